// The page's only script. Every page works without it; it saves reloads: it searches as you type,
// shows changes of the server, and asks in a dialog.
"use strict";
(() => {
  const root = document.documentElement;

  // The theme, before anything is drawn.
  const themes = ["system", "light", "dark"];
  let theme = "system";
  const show = () => {
    if (theme === "system") delete root.dataset.theme;
    else root.dataset.theme = theme;
  };
  try {
    const stored = localStorage.getItem("theme");
    if (themes.includes(stored)) theme = stored;
  } catch {
    // Storage is not allowed.
  }
  show();

  const get = async (url, signal) => {
    const response = await fetch(url, {
      headers: { accept: "text/html" },
      credentials: "same-origin",
      signal,
    });
    const fetched = new DOMParser().parseFromString(await response.text(), "text/html");
    return { ok: response.ok, url: response.url, fetched };
  };

  const announce = (text) => {
    const status = document.getElementById("status");
    if (status && text) status.textContent = text;
  };

  // Replaces the content of a region, and keeps the focus.
  const replace = (region, other) => {
    if (region.innerHTML === other.innerHTML) return false;
    const focus = region.contains(document.activeElement) ? document.activeElement : null;
    const open = new Map(
      [...region.querySelectorAll("details")].map((one, at) => [at, one.open]),
    );
    region.replaceChildren(...[...other.childNodes].map((node) => document.importNode(node, true)));
    region.querySelectorAll("details").forEach((one, at) => {
      if (open.has(at)) one.open = open.get(at);
    });
    if (focus) {
      const same = [...region.querySelectorAll(focus.localName)].find((one) =>
        focus.id ? one.id === focus.id : one.getAttribute("href") === focus.getAttribute("href"),
      );
      if (same) same.focus({ preventScroll: true });
    }
    return true;
  };

  // Someone writes there.
  const busy = (region) =>
    region.querySelector("dialog[open]") ||
    (region.contains(document.activeElement) &&
      document.activeElement.matches("input, select, textarea"));

  const update = async (topics) => {
    const regions = [...document.querySelectorAll("[data-live]")].filter(
      (one) =>
        !topics || one.dataset.live.split(" ").some((topic) => topics.includes(topic)),
    );
    if (regions.length === 0) return;
    const href = location.href;
    try {
      const { ok, fetched } = await get(href);
      if (!ok) return;
      // A search has changed the address meanwhile, so this is the answer to another question.
      if (location.href !== href) return;
      for (const region of regions) {
        const other = fetched.getElementById(region.id);
        if (!other || busy(region) || !replace(region, other)) continue;
        announce(other.dataset.announce);
        // What came last in a conversation.
        region.querySelector(".talk > :last-child")?.scrollIntoView({ block: "nearest" });
      }
    } catch {
      // The stream notices that the server has gone.
    }
  };

  // Events. A stream that ends is opened again, each time later, up to half a minute.
  const listen = () => {
    const address = document.querySelector('meta[name="events"]');
    if (!address || !document.querySelector("[data-live]")) return;
    const line = document.getElementById("connection");
    const topics = ["skills", "runs", "agents", "approvals", "diagnostics", "chat"];
    let source = null;
    let tries = 0;
    let timer = 0;
    let waiting = new Set();
    let soon = 0;
    // Answers must not overtake each other.
    let last = Promise.resolve();

    const changed = (topic) => {
      waiting.add(topic);
      clearTimeout(soon);
      // All open pages hear of a change at once, and should not ask at once.
      soon = setTimeout(() => {
        const now = [...waiting];
        waiting = new Set();
        last = last.then(() => update(now));
      }, 50 + 200 * Math.random());
    };

    const open = () => {
      clearTimeout(timer);
      source = new EventSource(address.content);
      source.addEventListener("ready", () => {
        // An answer may have come between the page and its stream.
        const missed = tries > 0 ? undefined : ["chat"];
        last = last.then(() => update(missed));
        tries = 0;
        line.hidden = true;
      });
      for (const topic of topics) source.addEventListener(topic, () => changed(topic));
      source.onerror = () => {
        source.close();
        tries += 1;
        if (tries > 1) {
          line.textContent = "Not connected. This page may be out of date; trying again.";
          line.hidden = false;
        }
        const wait = Math.min(30000, 500 * 2 ** Math.min(tries, 6)) * (0.75 + Math.random() / 2);
        timer = setTimeout(open, wait);
      };
    };

    // Browsers open few connections to a server, so a page that nobody sees keeps none.
    const close = () => {
      clearTimeout(timer);
      source.close();
    };
    const again = () => {
      close();
      tries = 1;
      open();
    };

    open();
    if (document.hidden) close();
    addEventListener("pagehide", close);
    addEventListener("pageshow", (event) => {
      if (event.persisted) again();
    });
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) close();
      else again();
    });
  };

  // Search as you type.
  const search = (form) => {
    const region = document.getElementById(form.dataset.search);
    const field = form.querySelector('input[type="search"]');
    if (!region || !field) return;
    let timer = 0;
    let control = null;

    const run = async () => {
      const fields = [...new FormData(form)].filter(([, value]) => value !== "");
      const url = new URL(form.action);
      url.search = new URLSearchParams(fields).toString();
      if (control) control.abort();
      control = new AbortController();
      try {
        const { ok, fetched } = await get(url, control.signal);
        const other = fetched.getElementById(region.id);
        if (!ok || !other) return;
        history.replaceState(null, "", url);
        replace(region, other);
        announce(other.dataset.announce);
      } catch (error) {
        if (error.name !== "AbortError") form.submit();
      }
    };

    field.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(run, 200);
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      clearTimeout(timer);
      run();
    });
  };

  // Pages that ask before something is done, as dialogs.
  const ask = async (link) => {
    try {
      const { ok, fetched } = await get(link.href);
      const question = fetched.querySelector("[data-confirm]");
      if (!ok || !question) throw new Error("no question");
      const dialog = document.createElement("dialog");
      dialog.setAttribute("aria-label", link.textContent.trim());
      dialog.append(document.importNode(question, true));
      const cancel = dialog.querySelector("[data-cancel]");
      if (cancel) {
        cancel.addEventListener("click", (event) => {
          event.preventDefault();
          dialog.close();
        });
      }
      dialog.addEventListener("close", () => {
        dialog.remove();
        link.focus();
      });
      document.body.append(dialog);
      dialog.showModal();
    } catch {
      location.href = link.href;
    }
  };

  const start = () => {
    const button = document.querySelector("[data-theme-button]");
    if (button) {
      const name = () => {
        button.textContent = `Theme: ${theme}`;
      };
      button.hidden = false;
      name();
      button.addEventListener("click", () => {
        theme = themes[(themes.indexOf(theme) + 1) % themes.length];
        try {
          localStorage.setItem("theme", theme);
        } catch {
          // The choice lasts until the next page.
        }
        show();
        name();
      });
    }

    document.querySelectorAll("form[data-search]").forEach(search);

    document.addEventListener("click", (event) => {
      const plain = !(event.metaKey || event.ctrlKey || event.shiftKey || event.button);
      const link = plain && event.target.closest("a[data-dialog]");
      if (link && "showModal" in HTMLDialogElement.prototype) {
        event.preventDefault();
        ask(link);
      }
    });

    document.addEventListener("keydown", (event) => {
      const typing = event.target.matches("input, select, textarea, [contenteditable]");
      if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
        const field = document.querySelector('input[type="search"]');
        if (field) {
          event.preventDefault();
          field.focus();
          field.select();
        }
      }
    });

    // A conversation goes on with Enter; Shift and Enter make a line.
    document.querySelectorAll("textarea[data-send]").forEach((field) => {
      field.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
        event.preventDefault();
        field.form.requestSubmit();
      });
    });

    // A text that was changed and not sent.
    document.querySelectorAll("form[data-edit]").forEach((form) => {
      let changed = false;
      form.addEventListener("input", () => {
        changed = true;
      });
      form.addEventListener("submit", () => {
        changed = false;
      });
      addEventListener("beforeunload", (event) => {
        if (changed) event.preventDefault();
      });
    });

    const focus = document.querySelector("[data-focus]");
    if (focus) focus.focus();
    listen();
  };

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
