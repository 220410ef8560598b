"use strict";
// Finds an operator however people write it; the name that was meant comes first.
window.mpsmith.search = (() => {
  const PREFIXES = /^(?:torch\.)?(?:ops\.)?(?:aten(?:::|\.)|nn\.functional\.|functional\.|f\.|tensor\.|nn\.)?/;
  const squashed = (name) => name.replace(/[_.]/g, "");

  /** What a query may mean: "torch.linalg.svd(x)" is linalg_svd, "nn.BatchNorm2d" batchnorm, "aten::mode.values" mode. */
  function read(query) {
    const typed = query.trim().toLowerCase().replace(/\(.*$/, "");
    const bare = typed.replace(PREFIXES, "");
    const names = [bare, bare.replaceAll(".", "_")];
    if (typed.startsWith("aten") || typed.startsWith("torch.ops")) names.push(bare.split(".")[0]);
    const module = typed !== bare ? squashed(bare).replace(/[123]d$/, "") : squashed(bare);
    return { typed, bare, names, squashed: [squashed(bare), module], words: typed.split(/\s+/).filter(Boolean) };
  }

  const bareName = (name) => name.toLowerCase().replace(/^aten::/, "");

  /** How well a row fits, 0 the best; -1 where it does not. `text` is what else may be searched. */
  function rank(query, name, text) {
    if (!query.words.length) return 0;
    const own = bareName(name);
    if (own === query.typed || query.names.includes(own)) return 0;
    if (query.bare) {
      const joined = squashed(own);
      if (query.squashed.includes(joined)) return 1;
      if (query.names.some((each) => own.startsWith(each)) || own.replace(PREFIXES, "").startsWith(query.bare)) return 2;
      if (query.names.some((each) => own.includes(`_${each}`) || own.includes(`.${each}`))) return 3;
      if (query.bare.length > 2 && query.names.some((each) => own.includes(each))) return 4;
    }
    if (query.words.every((word) => name.toLowerCase().includes(word))) return 4;
    const long = query.words.every((word) => word.length > 2);
    return long && query.words.every((word) => text.includes(word)) ? 5 : -1;
  }

  return { read, rank };
})();
