"use strict";
/* The program of a round, solved from its Gram matrix.

   min ½‖d − g₀‖² subject to g_j · d ≥ τ ‖g_j‖² by the dual active-set method of Goldfarb and Idnani (Mathematical
   Programming 27, 1983), in which every quantity is an inner product. It starts from g₀, adds the most violated
   constraint, and drops those that no longer push. It ends with exact zeros, or with a proof that there is no d. */
const FedPCD = (() => {
  const SATISFIED = 1e-12; // relative to the terms of a slack: rounding
  const DEPENDENT = 1e-11; // squared distance of a unit row from the span of the active ones

  /* Solve M x = b for a symmetric positive definite M, with one step of refinement. */
  function solveSymmetric(M, b) {
    const n = b.length;
    const L = M.map((row) => row.slice());
    for (let j = 0; j < n; j++) {
      for (let k = 0; k < j; k++) L[j][j] -= L[j][k] * L[j][k];
      L[j][j] = Math.sqrt(Math.max(L[j][j], 1e-300));
      for (let i = j + 1; i < n; i++) {
        for (let k = 0; k < j; k++) L[i][j] -= L[i][k] * L[j][k];
        L[i][j] /= L[j][j];
      }
    }
    const apply = (right) => {
      const x = right.slice();
      for (let i = 0; i < n; i++) {
        for (let k = 0; k < i; k++) x[i] -= L[i][k] * x[k];
        x[i] /= L[i][i];
      }
      for (let i = n - 1; i >= 0; i--) {
        for (let k = i + 1; k < n; k++) x[i] -= L[k][i] * x[k];
        x[i] /= L[i][i];
      }
      return x;
    };
    const x = apply(b);
    const rest = b.map((value, i) => value - dot(M[i], x));
    const more = apply(rest);
    return x.map((value, i) => value + more[i]);
  }

  function dot(a, b) {
    let sum = 0;
    for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
    return sum;
  }

  const times = (M, x) => M.map((row) => dot(row, x));

  /* Multipliers of the program at one tolerance: {mu, farkas}. farkas is null if it has a solution. */
  function multipliers(gram, linear, tau) {
    const c = linear.length;
    const norms = gram.map((row, j) => Math.sqrt(row[j]));
    const unit = gram.map((row, i) => row.map((value, j) => (i === j ? 1 : value / norms[i] / norms[j])));
    const raw = linear.map((value, j) => tau * gram[j][j] - value);
    const short = raw.some((value, j) => value > (tau > 0 ? SATISFIED * (Math.abs(linear[j]) + tau * gram[j][j]) : 0));
    const mu = new Array(c).fill(0);
    if (!short) return { mu, farkas: null };
    const deficits = raw.map((value, j) => value / norms[j]);
    const size = Math.max(...deficits);
    for (let j = 0; j < c; j++) deficits[j] /= size;
    const active = [];
    const ignored = new Set(); // at τ = 0 nothing contradicts: what seems to is rounding
    const among = (rows, columns) => rows.map((i) => columns.map((j) => unit[i][j]));
    for (let step = 0; step < 50 * c + 100; step++) {
      let worst = -1;
      let violation = 0;
      for (let j = 0; j < c; j++) {
        if (active.includes(j) || ignored.has(j)) continue;
        let slack = -deficits[j];
        let terms = Math.abs(deficits[j]);
        for (const k of active) {
          slack += unit[j][k] * mu[k];
          terms += Math.abs(unit[j][k] * mu[k]);
        }
        if (slack + SATISFIED * terms < violation) {
          violation = slack + SATISFIED * terms;
          worst = j;
        }
      }
      if (worst < 0) break;
      const farkas = addConstraint(worst);
      if (farkas && tau > 0) return { mu: new Array(c).fill(0), farkas };
      if (farkas) ignored.add(worst);
    }
    /* The last digits, from the active rows alone. */
    const finished = active.length ? solveSymmetric(among(active, active), active.map((j) => deficits[j])) : [];
    if (finished.every((value) => value > 0)) active.forEach((j, k) => (mu[j] = finished[k]));
    return { mu: mu.map((value, j) => (active.includes(j) ? (value * size) / norms[j] : 0)), farkas: null };

    /* Make constraint p hold and active; return the proof of infeasibility if it can't. */
    function addConstraint(p) {
      for (;;) {
        const cross = active.map((j) => unit[j][p]);
        const r = active.length ? solveSymmetric(among(active, active), cross) : [];
        const distance = 1 - dot(cross, r);
        let slack = -deficits[p] + mu[p];
        active.forEach((j) => (slack += unit[p][j] * mu[j]));
        const full = distance > DEPENDENT ? -slack / distance : Infinity;
        let partial = Infinity;
        let blocking = -1;
        r.forEach((value, k) => {
          if (value > 1e-14 && mu[active[k]] / value < partial) {
            partial = mu[active[k]] / value;
            blocking = k;
          }
        });
        const length = Math.min(full, partial);
        if (length === Infinity) {
          const proof = new Array(c).fill(0);
          proof[p] = 1 / norms[p];
          active.forEach((j, k) => (proof[j] = Math.max(0, -r[k]) / norms[j]));
          const total = proof.reduce((a, b) => a + b, 0);
          mu[p] = 0;
          return proof.map((value) => value / total);
        }
        active.forEach((j, k) => (mu[j] -= length * r[k]));
        mu[p] += length;
        if (full <= partial) {
          active.push(p);
          return null;
        }
        mu[active[blocking]] = 0;
        active.splice(blocking, 1);
      }
    }
  }

  /* Everything that is shown of a round at one tolerance. */
  function explain(data, tau) {
    const c = data.client_ids.length;
    const products = data.reference_products;
    const linear = data.primary ? products : products.map(() => 0);
    let found = multipliers(data.gram, linear, tau);
    const farkas = found.farkas;
    let used = tau;
    if (farkas && data.relax) {
      used = 0;
      found = multipliers(data.gram, linear, 0);
    }
    const mu = found.mu;
    const active = mu.map((value) => value > 0);
    const nActive = active.filter(Boolean).length;
    const gaveUp = farkas !== null && !data.relax;
    const pulled = times(data.gram, mu);
    const correction = Math.sqrt(Math.max(0, dot(mu, pulled)));
    const followsAverage = nActive === 0 && (data.primary || gaveUp);
    const atAverage = data.primary || followsAverage ? 1 : 0;
    const after = products.map((value, j) => atAverage * value + pulled[j]);
    const r = data.reference_norm;
    const alongs = products.map((value) => value / r);
    const along = dot(alongs, mu);
    const across = Math.sqrt(Math.max(0, correction * correction - along * along));
    const update = [along + atAverage * r, across];
    const noStep = Math.hypot(...update) <= 4e-6 * r;
    const required = data.gram.map((row, j) => used * row[j]);
    const lengths = mu.map((value, j) => value * Math.sqrt(data.gram[j][j]));
    const total = lengths.reduce((a, b) => a + b, 0) || 1;
    const status = noStep ? "no_step" : gaveUp ? "infeasible" : farkas ? "relaxed" : nActive ? "bent" : "unchanged";
    return {
      tau, used, mu, active, nActive, farkas, status, correction, after, required, update, alongs,
      slack: after.map((value, j) => value - required[j]),
      share: lengths.map((value) => value / total),
      short: products.map((value, j) => required[j] - value > SATISFIED * (Math.abs(value) + required[j])),
      angle: noStep ? null : nActive === 0 ? 0 : (Math.atan2(update[1], update[0]) * 180) / Math.PI,
      least: c ? Math.min(...after) : null,
      ends: ends(data, pulled, alongs, along, across, correction),
    };
  }

  /* Projections of the clients on the plane through g₀ and the correction. */
  function ends(data, pulled, alongs, along, across, correction) {
    if (across > 1e-9 * Math.max(correction, data.reference_norm)) {
      return alongs.map((x, j) => [x, (pulled[j] - x * along) / across]);
    }
    /* Nothing bends: the second axis is where the clients differ most, by power iteration on G − x xᵀ. */
    const c = alongs.length;
    const rest = data.gram.map((row, i) => row.map((value, j) => value - alongs[i] * alongs[j]));
    let vector = alongs.map((_, j) => Math.cos(j + 1));
    let value = 0;
    for (let k = 0; k < 300 && c; k++) {
      const next = times(rest, vector);
      value = Math.hypot(...next);
      if (value < 1e-14) break;
      vector = next.map((entry) => entry / value);
    }
    let largest = 0;
    vector.forEach((entry, j) => { if (Math.abs(entry) > Math.abs(vector[largest])) largest = j; });
    const scale = Math.sqrt(Math.max(0, value)) * (vector[largest] < 0 ? -1 : 1);
    return alongs.map((x, j) => [x, scale * vector[j]]);
  }

  /* Corners of the admissible part of a square around `middle` (Sutherland and Hodgman). */
  function region(result, middle, half) {
    let corners = [[-1, -1], [1, -1], [1, 1], [-1, 1]].map(([x, y]) => [middle[0] + half * x, middle[1] + half * y]);
    result.ends.forEach(([x, y], j) => {
      const heights = corners.map((p) => x * p[0] + y * p[1] - result.required[j]);
      const kept = [];
      corners.forEach((there, i) => {
        const k = (i + corners.length - 1) % corners.length;
        const here = corners[k];
        if (heights[k] * heights[i] < 0) {
          const part = heights[k] / (heights[k] - heights[i]);
          kept.push([here[0] + (there[0] - here[0]) * part, here[1] + (there[1] - here[1]) * part]);
        }
        if (heights[i] >= 0) kept.push(there);
      });
      corners = kept;
    });
    return corners;
  }

  return { multipliers, explain, region };
})();
