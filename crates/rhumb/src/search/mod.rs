//! The text index, asked: what a query is and what comes back ([`answer`]), the same for the command line, HTTP and the pages.

pub mod answer;
