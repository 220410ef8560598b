"use strict";
// Finds an operator however people write it; the name that was meant comes first.
window.mpsmith.search = (() => {
  const PREFIXES = /^(?:torch\.)?(?:ops\.)?(?:aten(?:::|\.)|nn\.functional\.|functional\.|f\.|tensor\.|nn\.)?/;
  const NAMESPACES = new Set(["linalg", "fft", "special", "nn", "functional", "sparse", "nested", "quantized"]);
  const FILTERS = new Set(["status", "dtype", "since", "evidence"]);
  const DTYPES = new Set(["float32", "float16", "bfloat16", "complex64", "int8", "int16", "int32", "int64", "uint8", "bool"]);
  const squashed = (name) => name.replace(/[_.]/g, "");

  /** Whether two names differ by one letter: one more, one less, another one, or two that changed places. */
  function differsByOne(a, b) {
    if (Math.abs(a.length - b.length) > 1 || a === b) return false;
    let at = 0;
    while (at < a.length && a[at] === b[at]) at++;
    const rest = (text, from) => text.slice(from);
    return rest(a, at + 1) === rest(b, at) || rest(a, at) === rest(b, at + 1) || rest(a, at + 1) === rest(b, at + 1)
      || (a[at] === b[at + 1] && a[at + 1] === b[at] && rest(a, at + 2) === rest(b, at + 2));
  }

  /**
   * What a query may mean: "torch.linalg.svd(x)" is linalg_svd, "x.mode()" mode, "cumsum int64" cumsum in a dtype,
   * and "status:dtype-gap since:2.14" filters. A "-" in the value of a filter is a space, a "!" before it means all others.
   */
  function read(query) {
    const filters = {};
    const isFilter = (word) => {
      const [, key, value] = /^([a-z]+):([^:]+)$/.exec(word) || [];
      if (!FILTERS.has(key)) return false;
      filters[key] = [...(filters[key] || []), value.replaceAll("-", " ")];
      return true;
    };
    const every = query.trim().toLowerCase().replace(/\(.*?(\)|$)/g, "").split(/\s+/).filter((word) => !isFilter(word));
    const named = [...every.filter((word) => DTYPES.has(word)), ...(filters.dtype || [])];
    const typed = every.filter((word) => !DTYPES.has(word)).join(" ");
    const bare = typed.replace(PREFIXES, "");
    const names = [bare, bare.replaceAll(".", "_")];
    if (typed.startsWith("aten") || typed.startsWith("torch.ops")) names.push(bare.split(".")[0]);
    const [object, ...attributes] = bare.split(".");
    if (attributes.length && !NAMESPACES.has(object)) names.push(attributes.at(-1)); // a method: x.mode()
    const module = typed !== bare ? squashed(bare).replace(/[123]d$/, "") : squashed(bare);
    return { typed, bare, names, squashed: [squashed(bare), module], words: typed.split(/\s+/).filter(Boolean), dtypes: named, filters };
  }

  const bareName = (name) => name.toLowerCase().replace(/^aten::/, "");

  /** How well a row fits, 0 the best; -1 where it does not. `text` is what else may be searched. */
  function rank(query, name, text) {
    if (!query.words.length) return 0;
    const own = bareName(name);
    if (own === query.typed || query.names.includes(own)) return 0;
    if (query.bare) {
      const joined = squashed(own);
      if (own.replace(PREFIXES, "") === query.bare) return 1;
      if (query.squashed.includes(joined)) return 1;
      if (query.names.some((each) => own.startsWith(each)) || own.replace(PREFIXES, "").startsWith(query.bare)) return 2;
      if (query.names.some((each) => own.includes(`_${each}`) || own.includes(`.${each}`))) return 3;
      if (query.bare.length > 2 && query.names.some((each) => own.includes(each))) return 4;
    }
    if (query.words.every((word) => name.toLowerCase().includes(word))) return 4;
    if (query.bare.length > 3 && differsByOne(query.bare, own.replace(PREFIXES, ""))) return 4;
    const long = query.words.every((word) => word.length > 2);
    return long && query.words.every((word) => text.includes(word)) ? 5 : -1;
  }

  /** The rows that fit; those that have a word in their reason alone only where no name fits. */
  function best(ranked) {
    const byName = ranked.filter(({ rank: found }) => found >= 0 && found < 5);
    return byName.length ? byName : ranked.filter(({ rank: found }) => found >= 0);
  }

  return { read, rank, best };
})();
