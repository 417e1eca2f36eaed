import { html, seen } from "./tools.js";

// Steps that play, in so many frames, with buttons and a slider; the setting `name` holds the step
export function player(app, name, end, frames) {
  Object.assign(app, { end, button: {}, slider: {}, buttons: () => buttons(app) }); // where they are hidden
  let untouched = true;
  // with reduced motion the page opens on the end of the way
  app.now = () => Math.min(app.state[name] === "" && app.still && !app.framed ? end : Number(app.state[name]) || 0, end);
  const to = (step) => { app.state[name] = app.slider.value = Math.min(Math.max(Math.round(step), 0), end); };
  app.go = (step) => { app.play(false); to(step); app.refresh(); };
  app.play = (on) => {
    untouched = false;
    cancelAnimationFrame(app.next); // or it would play twice as fast
    app.playing = on;
    app.button.textContent = on ? "❚❚ pause" : "▶ play";
    let at = app.now() < end ? app.now() : 0;
    const advance = () => {
      to(at += end / frames);
      app.draw();
      if (app.now() < end) app.next = requestAnimationFrame(advance);
      else app.play(false);
    };
    if (on) app.next = requestAnimationFrame(advance);
  };
  if (!app.calm && app.state[name] === "") seen(app.el, () => setTimeout(() => untouched && app.play(true), 400));
}

function buttons(app) {
  const row = html("div", { className: "buttons" }), button = (label, text, onclick) =>
    html("button", { type: "button", title: label, ariaLabel: label, onclick }, row, text);
  app.button = html("button", { type: "button", onclick: () => { app.asked = true; app.play(!app.playing); } }, row, app.playing ? "❚❚ pause" : "▶ play");
  button("one step", "▶❚", () => app.go(app.now() + 1));
  button("to the start", "❙◀", () => app.go(0));
  app.slider = html("input", { type: "range", min: 0, max: app.end, ariaLabel: "step", oninput: () => app.go(Number(app.slider.value)) }, row);
  app.slider.value = app.now();
  return row;
}
