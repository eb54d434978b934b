// Asks for the token of a reader.

import { element, replace } from "./dom.js";
import { readAccess } from "./access.js";
import { Problem, setToken } from "./server.js";

/** Shows the form in place of a view. */
export function showSignIn(main, problem, signedIn) {
  const input = element("input", { type: "password", id: "token", required: true, autocomplete: "off", size: "40" });
  const submit = async (event) => {
    event.preventDefault();
    setToken(input.value);
    try {
      // One request: the server refuses an address for a while that sends many wrong tokens.
      await readAccess();
    } catch (error) {
      if (error instanceof Problem && error.status !== 403) {
        setToken(null);
        showSignIn(main, error.message, signedIn);
        return;
      }
    }
    signedIn();
  };
  replace(main,
    element("h1", {}, "Sign in"),
    element("p", {}, "This server needs an access token. ", element("code", {}, "grid-batch token create --name NAME --scope read,operate --reason TEXT"), " makes one; the scope ",
      element("code", {}, "read"), " shows everything, ", element("code", {}, "operate"), " also allows actions. It is kept until this tab is closed."),
    problem && element("p", { class: "notice bad" }, problem),
    element("form", { class: "filters", onsubmit: submit },
      element("label", { for: "token" }, "Access token", input),
      element("button", { type: "submit", class: "primary" }, "Sign in")));
  input.focus();
}
