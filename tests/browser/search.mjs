// The search page in a real browser, as a person uses it. Arguments: the server's address, and a JSON object with what was crawled:
//   { "query": finds two pages of results or more, "prefix": begins "word", which the index completes it to, "title": of the first result,
//     "hostile": { "query", "text": a title that is markup, and must be shown as text },
//     "armed": { "url", "heading": of a page with a link whose scripts would change it, "elsewhere": host that it would like to reach } }
// A third argument names a directory for pictures of the pages. Ends with 1 and a line for the first thing that is not as it should be.
import { createServer } from "node:net";
import { chromium } from "playwright-core";

const [address, json, pictures] = process.argv.slice(2);
const crawled = JSON.parse(json);
// Where the armed page would like to reach: whatever connects there is counted, be it for a picture or for nothing yet.
let reached = 0;
const elsewhere = createServer((socket) => {
  reached += 1;
  socket.on("error", () => {}).end("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
});
await new Promise((listening) => elsewhere.listen(0, "127.0.0.1", listening));
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
    `--host-resolver-rules=MAP ${crawled.armed.elsewhere} 127.0.0.1:${elsewhere.address().port}`],
});

const complaints = [], requests = [];
let doing = "start";
const is = (truth, what) => { if (!truth) throw new Error(what); };
const same = (got, expected, what) => is(got === expected, `${what}: ${JSON.stringify(got)} instead of ${JSON.stringify(expected)}`);

/** A page that notes what it complains about and asks for. */
const open = async (options = {}) => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  page.on("console", (message) => {
    // That a copy was not let do something is as it should be.
    const of_copy = [message.location().url, message.text()].some((text) => text.includes("/cached/inert"));
    if (["error", "warning"].includes(message.type()) && !of_copy) complaints.push(`${doing}: ${message.text()}`);
  });
  page.on("pageerror", (error) => complaints.push(`${doing}: ${error}`));
  context.on("request", (request) => requests.push(request));
  return page;
};
const at = (target) => address.replace(/\/$/, "") + target;
const search = (query) => at("/search?q=" + encodeURIComponent(query));
const picture = async (page, name) => { if (pictures) await page.screenshot({ path: `${pictures}/${name}.png`, fullPage: false }); };
const focused = (page) => page.evaluate(() => [...document.querySelectorAll(".results h2 a")].indexOf(document.activeElement));

const steps = {
  async "a query is typed and asked"() {
    const page = await open();
    await page.goto(at("/"));
    await picture(page, "front");
    is(await page.locator(".ask input").evaluate((field) => field === document.activeElement), "the field has no focus");
    await page.locator(".ask input").pressSequentially(crawled.query);
    await page.keyboard.press("Escape");
    await page.locator(".ask input").focus();
    await page.keyboard.press("Enter");
    await page.waitForSelector(".results h2 a");
    same(await page.locator(".find input[name=q]").inputValue(), crawled.query, "what stands in the field");
    same((await page.locator(".results h2 a").first().textContent()).trim(), crawled.title, "the first result");
    is(await page.locator(".results mark").count() > 0, "nothing is marked");
    await picture(page, "results");
    await page.context().close();
  },
  async "a word is completed by keys"() {
    const page = await open();
    await page.goto(at("/"));
    await page.locator(".ask input").pressSequentially(crawled.prefix);
    const option = page.locator("[role=option]", { hasText: new RegExp(`^${crawled.word}$`) });
    await option.waitFor();
    await picture(page, "completion");
    same(await page.locator(".ask input").getAttribute("aria-expanded"), "true", "aria-expanded");
    for (let n = 0; n < 20 && await option.getAttribute("aria-selected") !== "true"; n++) await page.keyboard.press("ArrowDown");
    same(await option.getAttribute("aria-selected"), "true", "aria-selected");
    await page.keyboard.press("Tab");
    same(await page.locator(".ask input").inputValue(), crawled.word + " ", "after Tab");
    await page.keyboard.press("Backspace");
    await page.keyboard.press("Backspace");
    await option.waitFor();
    for (let n = 0; n < 20 && await option.getAttribute("aria-selected") !== "true"; n++) await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.waitForURL((url) => url.pathname === "/search");
    same(new URL(page.url()).searchParams.get("q"), crawled.word, "what was asked");
    await page.context().close();
  },
  async "results are walked by keys"() {
    const page = await open();
    await page.goto(search(crawled.query));
    await page.keyboard.press("/");
    is(await page.locator(".find input").evaluate((field) => field === document.activeElement), "/ does not lead to the field");
    await page.keyboard.press("Escape");
    is(await page.evaluate(() => document.activeElement === document.body), "Escape does not leave the field");
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    same(await focused(page), 1, "after j j");
    const ring = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    is(ring !== "none", "the focus is not to be seen");
    await picture(page, "keys");
    await page.keyboard.press("k");
    same(await focused(page), 0, "after k");
    await page.keyboard.press("ArrowDown");
    same(await focused(page), 1, "after the arrow");
    await page.keyboard.press("n");
    await page.waitForURL((url) => url.searchParams.get("page") === "2");
    is(await page.locator(".results li").count() > 0, "the second page is empty");
    await page.keyboard.press("p");
    await page.waitForURL((url) => !url.searchParams.has("page"));
    await page.locator(".pager a[rel=next]").click();
    await page.waitForURL((url) => url.searchParams.get("page") === "2");
    await page.context().close();
  },
  async "Enter opens what has the focus"() {
    const page = await open();
    await page.goto(search(crawled.query));
    const target = await page.locator(".results h2 a").first().getAttribute("href");
    let asked = "";
    // Where it leads is not part of this web; that it was asked for is enough.
    await page.route((url) => url.href === new URL(target).href, (route) => { asked = route.request().url(); return route.fulfill({ status: 200, body: "there" }); });
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.waitForURL(new URL(target).href);
    same(asked, new URL(target).href, "what was opened");
    requests.splice(requests.findIndex((request) => request.url() === asked), 1);
    await page.context().close();
  },
  async "dark is another set of colours"() {
    const colours = [];
    for (const colorScheme of ["light", "dark"]) {
      const page = await open({ colorScheme });
      await page.goto(search(crawled.query));
      await picture(page, `results-${colorScheme}`);
      colours.push(await page.evaluate(() => {
        const of = (place) => getComputedStyle(document.querySelector(place));
        return [of("body").backgroundColor, of("body").color, of(".results h2 a").color, of(".results .snippet mark").backgroundColor];
      }));
      await page.goto(at("/"));
      await picture(page, `front-${colorScheme}`);
      await page.context().close();
    }
    colours[0].forEach((colour, n) => is(colour !== colours[1][n], `colour ${n} is ${colour} in both`));
  },
  async "a phone needs no scrolling aside"() {
    for (const colorScheme of ["light", "dark"]) {
      const page = await open({ viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2, colorScheme });
      const targets = ["/", "/search?q=" + encodeURIComponent(crawled.query), "/search?q=" + encodeURIComponent(crawled.hostile.query), "/search?q=zzzzqqq",
        "/graph", "/path", "/cached?url=" + encodeURIComponent(crawled.armed.url), "/cached?as=page&url=" + encodeURIComponent(crawled.armed.url)];
      for (const [n, target] of targets.entries()) {
        await page.goto(at(target));
        const [wide, has] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
        is(wide <= has, `${target} is ${wide} wide where ${has} are`);
        await picture(page, `phone-${colorScheme}-${n}`);
      }
      await page.context().close();
    }
  },
  async "markup in a title is text"() {
    const page = await open();
    page.on("dialog", (dialog) => { complaints.push(`a dialog: ${dialog.message()}`); return dialog.dismiss(); });
    await page.goto(search(crawled.hostile.query));
    const titles = (await page.locator(".results h2 a").allTextContents()).map((title) => title.trim());
    is(titles.includes(crawled.hostile.text), `${JSON.stringify(crawled.hostile.text)} is not among ${JSON.stringify(titles)}`);
    same(await page.evaluate(() => document.querySelectorAll(".results script, .results img").length), 0, "elements of strangers");
    await page.context().close();
  },
  async "a copy does nothing"() {
    const page = await open();
    page.on("dialog", (dialog) => { complaints.push(`a dialog: ${dialog.message()}`); return dialog.dismiss(); });
    await page.goto(at("/cached?url=" + encodeURIComponent(crawled.armed.url)));
    is(await page.locator("iframe").count() === 0, "a frame that was not asked for");
    await picture(page, "copy-text");
    await page.locator(".copy a", { hasText: "as it was laid out" }).click();
    await page.waitForSelector("iframe.inert");
    const frame = page.frames().find((frame) => frame.url().includes("/cached/inert"));
    is(frame, "there is no frame");
    await frame.waitForSelector("h1");
    await page.waitForTimeout(500);
    same((await frame.locator("h1").first().textContent()).trim(), crawled.armed.heading, "the heading in the frame");
    await frame.locator("a").first().click();
    await page.waitForTimeout(300);
    is(frame.url().includes("/cached/inert"), `the frame went to ${frame.url()}`);
    await picture(page, "copy-page");
    // Opened by itself, the document is as still.
    await page.goto(at("/cached/inert?url=" + encodeURIComponent(crawled.armed.url)));
    await page.waitForTimeout(300);
    same((await page.locator("h1").first().textContent()).trim(), crawled.armed.heading, "the heading by itself");
    is(page.url().includes("/cached/inert"), `it went to ${page.url()}`);
    await page.context().close();
  },
  async "all of it works without a script"() {
    const page = await open({ javaScriptEnabled: false });
    await page.goto(at("/"));
    await page.locator(".ask input").fill(crawled.query);
    await page.locator(".ask button").click();
    await page.waitForSelector(".results h2 a");
    await page.locator(".pager a[rel=next]").click();
    await page.waitForURL((url) => url.searchParams.get("page") === "2");
    await page.locator(".help summary").click();
    is(await page.locator(".help dl").isVisible(), "the help does not open");
    await picture(page, "help");
    await page.context().close();
  },
  async "nothing was asked of others"() {
    // The browser also tells of requests that the policy stopped before they were sent.
    const left = (request) => !/BLOCKED_BY_CSP|^csp$/i.test(request.failure()?.errorText ?? "");
    const others = requests.filter(left).map((request) => request.url()).filter((url) => new URL(url).origin !== new URL(address).origin && !url.startsWith("data:"));
    same(others.length, 0, `requests to others: ${others}`);
    same(reached, 0, "connections to elsewhere");
    same(complaints.length, 0, `complaints: ${complaints.join("; ")}`);
    // Had there been any, they would have been counted.
    const page = await open();
    await page.goto(`http://${crawled.armed.elsewhere}/`).catch(() => {});
    is(reached > 0, "elsewhere cannot be reached at all, so that nothing was proved");
    await page.context().close();
  },
};

try {
  for (const [name, step] of Object.entries(steps)) {
    doing = name;
    await step();
    console.log(`ok: ${name}`);
  }
} catch (error) {
  console.log(`not ok: ${doing}: ${error.message}`);
  process.exitCode = 1;
} finally {
  await browser.close();
  elsewhere.close();
}
