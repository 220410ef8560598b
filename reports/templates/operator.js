"use strict";
// The page of one operator: the answers and overloads of this audit, above what releases and devices show.
document.addEventListener("DOMContentLoaded", async () => {
  const { make, load, details } = window.mpsmith;
  const place = document.getElementById("operator");
  if (!place) return;
  try {
    details.use(await load("legend"));
    const { page, ...found } = await details.operator(place.dataset.name, Number(place.dataset.part));
    place.replaceChildren(...details.operatorDetail(found));
  } catch (error) {
    place.replaceChildren(make("p", { class: "notice", role: "alert" }, error.message));
  }
});
