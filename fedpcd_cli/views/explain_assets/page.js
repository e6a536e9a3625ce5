"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const element = (id) => document.getElementById(id);
  const clamp = (value) => Math.min(1, Math.max(0, value));
  const SIDE = 520;
  let order = { key: "need", descending: false };
  let result = null;

  function number(value) {
    if (value === null) return "–";
    const size = Math.abs(value);
    if (size < 1e-9) return "0";
    if (size < 0.005) return value.toPrecision(1);
    return size < 1e4 ? value.toFixed(2) : value.toExponential(1);
  }

  const COLUMNS = [
    ["marks", "", (j) => (result.short[j] ? "!" : "") + (result.active[j] ? "*" : ""), (j) => -2 * result.short[j] - result.active[j]],
    ["client", "Client", (j) => String(data.client_ids[j]), (j) => data.client_ids[j]],
    ["age", "Seen", (j) => (data.ages[j] === 0 ? "now" : data.ages[j] + " ago"), (j) => data.ages[j]],
    ["weight", "Weight", (j) => (data.ages[j] === 0 ? (100 * data.weights[j]).toFixed(1) + "%" : "–"), (j) => data.weights[j]],
    ["norm", "Norm", (j) => number(data.norms[j]), (j) => data.norms[j]],
    ["need", "Along FedAvg", (j) => number(data.reference_products[j]), (j) => data.reference_products[j] - result.required[j]],
    ["required", "Needs τ‖g̃‖²", (j) => String(+result.required[j].toPrecision(3)), (j) => result.required[j]],
    ["after", "Along update", (j) => number(result.after[j]), (j) => result.after[j]],
    ["slack", "Slack", (j) => number(result.slack[j]), (j) => result.slack[j]],
    ["multiplier", "μ", (j) => number(result.mu[j]), (j) => result.mu[j]],
    ["share", "Share", (j) => (result.active[j] ? (100 * result.share[j]).toFixed(1) + "%" : "–"), (j) => result.share[j]],
  ];

  function sentence() {
    const count = data.client_ids.length;
    const bent = `bent by ${result.nActive} of ${count} constraint${count === 1 ? "" : "s"}`;
    const apart = result.farkas === null ? "" : data.client_ids.filter((_, j) => result.farkas[j] > 0).join(", ");
    return {
      unchanged: "unchanged FedAvg: no client falls short",
      bent,
      relaxed: `infeasible: clients ${apart} contradict each other; τ was cut to 0, ${result.nActive ? bent : "FedAvg unchanged"}`,
      infeasible: `infeasible for every τ > 0: clients ${apart} contradict each other; the round follows FedAvg`,
      no_step: "no step: the admissible direction is zero",
    }[result.status];
  }

  function fillTable() {
    const body = element("rows");
    const key = COLUMNS.find((column) => column[0] === order.key)[3];
    const places = data.client_ids.map((_, j) => j);
    const sign = order.descending ? -1 : 1;
    places.sort((a, b) => sign * (key(a) - key(b)) || data.client_ids[a] - data.client_ids[b]);
    body.replaceChildren(...places.map((j) => {
      const row = document.createElement("tr");
      row.dataset.client = data.client_ids[j];
      row.dataset.multiplier = result.mu[j];
      row.dataset.after = result.after[j];
      row.className = (result.short[j] ? "short " : "") + (result.active[j] ? "active" : "");
      COLUMNS.forEach(([, , text], k) => {
        const cell = document.createElement(k === 1 ? "th" : "td");
        if (k === 1) cell.scope = "row";
        cell.textContent = text(j);
        if (k === 0) cell.title = (result.short[j] ? "falls short along FedAvg " : "") + (result.active[j] ? "active" : "");
        row.append(cell);
      });
      return row;
    }));
    document.querySelectorAll("#head th").forEach((cell) => {
      const chosen = cell.dataset.key === order.key;
      cell.setAttribute("aria-sort", chosen ? (order.descending ? "descending" : "ascending") : "none");
    });
  }

  function makeHead() {
    const row = element("head");
    for (const [key, title] of COLUMNS) {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.dataset.key = key;
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = title || "!*";
      button.setAttribute("aria-label", "Sort by " + (title || "marks"));
      button.addEventListener("click", () => {
        order = { key, descending: order.key === key ? !order.descending : false };
        fillTable();
      });
      cell.append(button);
      row.append(cell);
    }
  }

  function shape(name, attributes, parent, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  }

  function draw() {
    const all = [[0, 0], [data.reference_norm, 0], result.update, ...result.ends];
    const xs = all.map((p) => p[0]);
    const ys = all.map((p) => p[1]);
    const low = [Math.min(...xs), Math.min(...ys)];
    const high = [Math.max(...xs), Math.max(...ys)];
    const middle = [(low[0] + high[0]) / 2, (low[1] + high[1]) / 2];
    const half = 0.6 * Math.max(high[0] - low[0], high[1] - low[1]);
    const at = ([x, y]) => [((x - middle[0]) / half + 1) * SIDE / 2, (1 - (y - middle[1]) / half) * SIDE / 2];
    const layer = (id) => { const group = element("layer-" + id); group.replaceChildren(); return group; };
    const arrow = (parent, end, kind, more) => {
      const [x1, y1] = at([0, 0]);
      const [x2, y2] = at(end);
      shape("line", { x1, y1, x2, y2, class: kind, ...more }, parent);
      const length = Math.hypot(x2 - x1, y2 - y1) || 1;
      const [u, v] = [(x2 - x1) / length, (y2 - y1) / length];
      const tip = [[0, 0], [-9, -3.5], [-9, 3.5]].map(([a, b]) => `${x2 + a * u - b * v},${y2 + a * v + b * u}`);
      shape("polygon", { points: tip.join(" "), class: kind }, parent);
    };
    const corners = result.status === "infeasible" ? [] : FedPCD.region(result, middle, half);
    const region = layer("region");
    if (corners.length) shape("polygon", { points: corners.map((p) => at(p).join(",")).join(" ") }, region);
    const [boundaries, clients, names, directions] = ["boundaries", "clients", "names", "directions"].map(layer);
    result.ends.forEach((end, j) => {
      const kind = (result.short[j] ? "short" : "other") + (result.active[j] ? " active" : "");
      const squared = end[0] * end[0] + end[1] * end[1];
      if (squared > 1e-12) {
        const foot = end.map((value) => (value * result.required[j]) / squared);
        const reach = (4 * half) / Math.sqrt(squared);
        const [x1, y1] = at([foot[0] - end[1] * reach, foot[1] + end[0] * reach]);
        const [x2, y2] = at([foot[0] + end[1] * reach, foot[1] - end[0] * reach]);
        shape("line", { x1, y1, x2, y2, class: kind }, boundaries);
      }
      arrow(clients, end, kind, data.ages[j] > 0 ? { "stroke-dasharray": "5 3" } : {});
      const [x, y] = at(end);
      const [ox, oy] = at([0, 0]);
      const away = 11 / (Math.hypot(x - ox, y - oy) || 1);
      shape("text", { x: x + (x - ox) * away, y: y + (y - oy) * away + 3, class: kind }, names, data.client_ids[j]);
    });
    arrow(directions, [data.reference_norm, 0], "average", {});
    if (result.status !== "no_step") arrow(directions, result.update, "update", {});
  }

  function show(tau) {
    result = FedPCD.explain(data, clamp(tau));
    element("tau").value = result.tau;
    element("tau-number").value = +result.tau.toFixed(4);
    element("tau").setAttribute("aria-valuetext", "tau " + +result.tau.toFixed(4));
    element("status").textContent = sentence();
    element("status").dataset.status = result.status;
    const facts = {
      "angle to FedAvg": result.angle === null ? "–" : result.angle.toFixed(1) + "°",
      "active constraints": String(result.nActive),
      "least progress": number(result.least),
      "correction": number(result.correction),
    };
    element("facts").replaceChildren(...Object.entries(facts).flatMap(([name, value]) => {
      const term = document.createElement("dt");
      const detail = document.createElement("dd");
      term.textContent = name;
      detail.textContent = value;
      return [term, detail];
    }));
    element("facts").dataset.angle = result.angle;
    element("panel-title").textContent =
      `FedAvg and the update at tau ${+result.tau.toFixed(4)}: ${sentence()}, ${facts["angle to FedAvg"]} apart`;
    draw();
    fillTable();
  }

  function wish() {
    const found = /tau=([\d.eE+-]+)/.exec(location.hash);
    return found && Number.isFinite(+found[1]) ? +found[1] : data.tau;
  }

  element("title").textContent = `${data.recipe}, ${data.rule}, seed ${data.seed}: round ${data.round} of ${data.n_rounds}`;
  document.title = element("title").textContent;
  element("recorded").textContent = `As recorded, τ = ${data.tau}: ${data.sentence}.`;
  element("tau").addEventListener("input", (event) => show(+event.target.value));
  element("tau-number").addEventListener("change", (event) => show(+event.target.value));
  element("reset").addEventListener("click", () => show(data.tau));
  window.addEventListener("hashchange", () => show(wish()));
  document.querySelectorAll("[data-layer]").forEach((box) => {
    box.addEventListener("change", () => element("layer-" + box.dataset.layer).toggleAttribute("hidden", !box.checked));
  });
  makeHead();
  show(wish());
})();
