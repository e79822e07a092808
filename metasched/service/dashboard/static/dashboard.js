// Draws the pictures from the numbers in the page, and folds the tables that say the same without them.
"use strict";
(() => {
  const drawn = [];
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const short = (value) => (value == null ? "–" : Number(value.toPrecision(3)).toString());

  function axis(more) {
    return {
      stroke: colour("--quiet"), font: "12px system-ui, sans-serif", grid: { stroke: colour("--rule"), width: 1 },
      ticks: { stroke: colour("--rule"), size: 4 }, ...more,
    };
  }

  const clock = (at) => new Date(at * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

  // Loads over time: the middle of the nodes as a line, between the ends as a band with dashed edges.
  function lines(numbers, what) {
    const edge = { stroke: colour("--second"), width: 1, dash: [5, 4], points: { show: false } };
    const [low, middle, high] = numbers[what];
    return {
      data: [numbers.time, low, high, middle],
      height: 140,
      caption: (at) => `${clock(numbers.time[at])}: ${short(low[at])}, ${short(middle[at])}, ${short(high[at])}`,
      options: {
        scales: { y: { range: (_, least, most) => (what === "cpu" ? [0, 1] : [0, Math.max(most, least, 1) * 1.05]) } },
        axes: [axis({ size: 26, space: 70, values: (_, splits) => splits.map(clock) }), axis({ size: 44 })],
        series: [{}, edge, edge, { stroke: colour("--first"), width: 2, points: { show: false } }],
        bands: [{ series: [2, 1], fill: colour("--band") }],
      },
    };
  }

  // Predicted against actual: circles where the interval held the outcome, crosses where it did not.
  function judged(numbers) {
    const { actual, predicted, inside } = numbers;
    const pick = (wanted) => predicted.map((value, index) => (inside[index] === wanted ? value : null));
    const every = [...actual, ...predicted];
    const ends = [Math.min(...every) / 1.25, Math.max(...every) * 1.25];
    const leading = ends[1] / ends[0] < 30 ? ["1", "2", "5"] : ["1"];
    const round = (_, splits) => splits.map((value) => (leading.includes(value.toExponential(3).replace(/\.?0*e.*/, "")) ? short(value) : ""));
    const log = { distr: 3, log: 10, range: () => ends };
    const named = (label, size) => axis({ label, size, labelSize: 16, labelFont: "12px system-ui, sans-serif", filter: (_, splits) => splits, values: round });
    return {
      data: [[ends[0], ...actual, ends[1]], [null, ...pick(true), null], [null, ...pick(false), null], [ends[0], ...actual, ends[1]]],
      height: 250,
      caption: (at) => (at > 0 && at <= actual.length ? `predicted ${short(predicted[at - 1])} s, actual ${short(actual[at - 1])} s` : ""),
      options: {
        scales: { x: { time: false, ...log }, y: log },
        axes: [named("actual", 30), named("predicted", 44)],
        series: [
          {},
          { stroke: colour("--first"), paths: () => null, points: { show: true, size: 7, width: 1.5 } },
          { stroke: colour("--second"), paths: () => null, points: { show: crosses } },
          { stroke: colour("--quiet"), width: 1, dash: [6, 5], points: { show: false } },
        ],
      },
    };
  }

  function crosses(plot, series) {
    const { ctx } = plot, size = 4 * devicePixelRatio;
    ctx.save();
    ctx.strokeStyle = colour("--second");
    ctx.lineWidth = 2 * devicePixelRatio;
    plot.data[series].forEach((value, index) => {
      if (value == null) return;
      const x = plot.valToPos(plot.data[0][index], "x", true), y = plot.valToPos(value, "y", true);
      ctx.beginPath();
      ctx.moveTo(x - size, y - size); ctx.lineTo(x + size, y + size);
      ctx.moveTo(x - size, y + size); ctx.lineTo(x + size, y - size);
      ctx.stroke();
    });
    ctx.restore();
    return false;
  }

  function draw() {
    drawn.splice(0).forEach((plot) => plot.destroy());
    document.querySelectorAll("figure[data-chart]").forEach((figure) => {
      const numbers = JSON.parse(figure.parentElement.querySelector("script").textContent);
      const place = figure.querySelector(".plot"), kind = figure.dataset.chart;
      const { data, height, caption, options } = kind === "judged" ? judged(numbers) : lines(numbers, kind);
      const pointed = figure.querySelector("output");
      const plot = new uPlot({
        width: place.clientWidth, height, legend: { show: false }, cursor: { y: false, drag: { x: false, y: false } },
        hooks: { setCursor: [(own) => { pointed.textContent = own.cursor.idx == null ? "" : caption(own.cursor.idx); }] },
        ...options,
      }, data, place);
      plot.root.setAttribute("role", "img");
      plot.root.setAttribute("aria-label", figure.querySelector("b").textContent);
      drawn.push(plot);
    });
  }

  document.querySelectorAll("details:not(.keep)").forEach((each) => { each.open = false; });
  document.querySelectorAll("time[datetime]").forEach((each) => {
    const at = new Date(each.getAttribute("datetime"));
    if (!Number.isNaN(at.getTime())) each.title = at.toLocaleString();
  });
  draw();
  dark.addEventListener("change", draw);
  let width = innerWidth, waiting = 0;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(draw, 150);
  });
  document.documentElement.dataset.drawn = String(drawn.length);
  // Look again every minute, but not while somebody reads a table that they have opened.
  setInterval(() => {
    if (!document.hidden && !document.querySelector("details[open]:not(.keep)")) location.reload();
  }, 60000);
})();
