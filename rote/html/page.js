"use strict";
(() => {
  const all = selector => [...document.querySelectorAll(selector)];
  const scenes = all(".scene");
  const links = all("nav ol a");
  const status = document.getElementById("status");
  const follow = document.getElementById("follow");
  const buttons = Object.fromEntries(["first", "previous", "next", "last"].map(name => [name, document.getElementById(name)]));
  const last = scenes.length - 1;
  let current = 0;

  // What a screen reader says: the heading, the sentence below it, and the block of the rank that is followed.
  function say() {
    const scene = scenes[current];
    const texts = [scene.querySelector("h2").textContent, scene.querySelector(".summary").textContent];
    const row = follow && follow.value && scene.querySelector(`tr[data-block][data-rank="${follow.value}"]`);
    if (row) texts.push(`Rank ${follow.value} holds ${row.dataset.block}.`);
    status.textContent = texts.join(". ").replace(/\.\. /g, ". ");
  }

  function show(number) {
    current = Math.min(Math.max(number, 0), last);
    scenes.forEach((scene, k) => { scene.hidden = k !== current; });
    links.forEach((link, k) => {
      if (k === current) link.setAttribute("aria-current", "step");
      else link.removeAttribute("aria-current");
    });
    buttons.first.disabled = buttons.previous.disabled = current === 0;
    buttons.next.disabled = buttons.last.disabled = current === last;
    say();
  }

  function go(number) {
    show(number);
    history.replaceState(null, "", `#scene-${current}`);
  }

  function mark() {
    const rank = follow ? follow.value : "";
    for (const map of all(".map, .cube")) map.classList.toggle("following", rank !== "");
    for (const cell of all("[data-ranks]")) cell.classList.toggle("mine", cell.dataset.ranks.split(" ").includes(rank));
    for (const row of all("tr[data-rank]")) row.classList.toggle("mine", row.dataset.rank === rank);
  }

  const fromAddress = () => Number((/^#scene-(\d+)$/.exec(location.hash) || [0, 0])[1]);
  const keys = { ArrowLeft: () => current - 1, ArrowRight: () => current + 1, Home: () => 0, End: () => last };

  document.addEventListener("keydown", event => {
    const busy = event.altKey || event.ctrlKey || event.metaKey || event.shiftKey;
    if (busy || !keys[event.key] || event.target.closest("select, pre, .scroll")) return;
    event.preventDefault();
    go(keys[event.key]());
  });
  buttons.first.addEventListener("click", () => go(0));
  buttons.previous.addEventListener("click", () => go(current - 1));
  buttons.next.addEventListener("click", () => go(current + 1));
  buttons.last.addEventListener("click", () => go(last));
  links.forEach((link, k) => link.addEventListener("click", event => { event.preventDefault(); go(k); }));
  window.addEventListener("hashchange", () => show(fromAddress()));
  if (follow) follow.addEventListener("change", () => { mark(); say(); });

  // A choice of modes shows one plane of the scene; the same modes are chosen in the other scenes that have them.
  function choose(select) {
    const planes = all(`[data-plane-of="${select.dataset.planes}"]`);
    planes.forEach((plane, k) => {
      plane.hidden = k !== select.selectedIndex;
      plane.querySelector("h4").hidden = true;
    });
  }
  const selects = all("select[data-planes]");
  for (const select of selects) {
    choose(select);
    select.addEventListener("change", () => {
      const name = select.selectedOptions[0].textContent;
      for (const other of selects) {
        const alike = [...other.options].findIndex(option => option.textContent === name);
        if (alike >= 0) { other.selectedIndex = alike; choose(other); }
      }
    });
  }
  window.addEventListener("beforeprint", () => { for (const each of all("details")) each.open = true; });

  document.querySelector(".bar").hidden = false;
  show(fromAddress()); // the address stays: the page would be opened in its middle
})();
