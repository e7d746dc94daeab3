// Questions to the server, and who asks.

// ask posts JSON. What the server declines is an Error with the answer as its body.
export async function ask(path, target) {
  const answer = await fetch(path, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(target),
  });
  const body = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(body.error), { status: answer.status, body });
  return body;
}

// failure says what went wrong.
export const failure = (error) => (error instanceof TypeError ? "The server cannot be reached." : error.message);

// caller is who asks, and whether it may change anything.
export const caller = { who: "", sure: false, may_change: false };

// loadCaller asks who that is, and calls then.
export async function loadCaller(then) {
  try {
    const answer = await fetch("/caller.json");
    if (!answer.ok) return;
    Object.assign(caller, await answer.json());
    then();
  } catch {
    setTimeout(() => loadCaller(then), 3000); // the page says that the connection is lost
  }
}
