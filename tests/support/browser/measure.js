// What a person sees of a page, in numbers.
(() => {
  const texts = (of) => [...document.querySelectorAll(of)].map((one) => one.textContent);
  const box = (one) => one.getBoundingClientRect();
  const channels = (colour) => colour.match(/[\d.]+/g).map(Number);
  const over = (top, below) => {
    const alpha = top.length > 3 ? top[3] : 1;
    return [0, 1, 2].map((at) => top[at] * alpha + below[at] * (1 - alpha));
  };
  const ground = (one) => {
    const above = one.parentElement ? ground(one.parentElement) : [255, 255, 255];
    return over(channels(getComputedStyle(one).backgroundColor), above);
  };
  const light = (colour) => {
    const [r, g, b] = colour.map((n) => (n / 255 <= 0.04045 ? n / 255 / 12.92 : ((n / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one) => {
    const of = ground(one);
    const [a, b] = [light(over(channels(getComputedStyle(one).color), of)), light(of)].sort((a, b) => b - a);
    return (a + 0.05) / (b + 0.05);
  };
  const hasText = (one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== "");
  const seen = [...document.querySelectorAll("main *")].filter((one) => hasText(one) && box(one).height > 0);
  // The part of a canvas that something is drawn on.
  const painted = (canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let drawn = 0;
    for (let at = 3; at < data.length; at += 4) drawn += data[at] > 0;
    return drawn / (data.length / 4);
  };
  const chart = (plot) => {
    const canvas = plot.querySelector("canvas");
    const { width, height, right } = box(plot);
    return { title: plot.closest("figure").querySelector("figcaption").textContent, width, height, right, label: plot.getAttribute("aria-label"), painted: canvas ? painted(canvas) : 0, hasTable: plot.closest("figure").querySelector("details") !== null };
  };
  const last = document.querySelectorAll(".numbers > div");
  return {
    title: document.title, sentence: texts("h1").join(" "), failed: document.documentElement.classList.contains("failed"),
    numbers: [...last].map((one) => [one.querySelector("dt").textContent, one.querySelector("dd").textContent]),
    firstScreen: Math.max(...[...last].map((one) => box(one).bottom)), wide: document.documentElement.scrollWidth, inner: innerWidth,
    charts: [...document.querySelectorAll(".plot")].map(chart), headings: texts("h2"), figures: document.querySelectorAll("figure").length,
    faint: seen.map((one) => [contrast(one).toFixed(2), one.tagName, one.textContent.slice(0, 40)]).filter(([of]) => of < 4.5),
    ground: getComputedStyle(document.body).backgroundColor, foreign: document.querySelectorAll("main img, main script, main iframe").length,
    nameless: [...document.querySelectorAll("main [tabindex]")].filter((one) => !one.getAttribute("aria-label")).length,
    last: document.querySelector("main > section:last-of-type h2")?.textContent ?? "", text: document.getElementById("page").innerText,
  };
})()
