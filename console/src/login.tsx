// The dialog for the name and the password of an ACL user. They are checked by a request that
// needs a login, and kept in memory only.

import { useEffect, useRef, useState } from 'preact/hooks';
import { declineLogin, login, loginNeeded, send, type Credentials } from './api';

export function Login() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState(loginNeeded.peek() ?? '');
  const [isBusy, setBusy] = useState(false);
  const password = useRef<HTMLInputElement>(null);
  const check = useRef(new AbortController());
  const accepted = useRef<Credentials | null>(null);
  useEffect(() => {
    dialog.current?.showModal();
    password.current?.focus();
  }, []);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const fields = new FormData(event.target as HTMLFormElement);
    setBusy(true);
    const checked = { user: String(fields.get('user')), password: String(fields.get('password')) };
    const { signal } = check.current;
    const answer = await send('api/v1/labels', { limit: 1 }, { as: checked, signal });
    if (signal.aborted) return;
    setBusy(false);
    // Who may not ask for labels is known all the same.
    if (!(answer instanceof Response) && answer.status !== 403) return setText(answer.text);
    accepted.current = checked;
    dialog.current?.close();
  };
  // The focus is back where it was before anything else changes.
  const close = () => {
    check.current.abort();
    if (accepted.current) login(accepted.current);
    else declineLogin();
  };
  return (
    <dialog ref={dialog} class="login" aria-labelledby="login-title" onClose={close}>
      <form onSubmit={submit}>
        <h2 id="login-title">Log in</h2>
        <p>A user of this server's access control list. The password stays in this page's memory.</p>
        {text && <p class="error" role="alert">{text}</p>}
        <label>User<input name="user" autocomplete="username" defaultValue="default" required /></label>
        <label>Password<input name="password" type="password" autocomplete="current-password" ref={password} /></label>
        <div class="row end">
          <button type="button" onClick={() => dialog.current?.close()}>Cancel</button>
          <button type="submit" class="primary" disabled={isBusy}>Log in</button>
        </div>
      </form>
    </dialog>
  );
}
