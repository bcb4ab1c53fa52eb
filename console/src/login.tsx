// The dialog for the name and the password of an ACL user. They are checked by a request that
// needs a login, and kept in memory only.

import { useEffect, useRef, useState } from 'preact/hooks';
import { login, loginNeeded, send } from './api';

export function Login() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState(loginNeeded.peek() ?? '');
  const [isBusy, setBusy] = useState(false);
  const password = useRef<HTMLInputElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
    password.current?.focus();
  }, []);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const fields = new FormData(event.target as HTMLFormElement);
    setBusy(true);
    const checked = { user: String(fields.get('user')), password: String(fields.get('password')) };
    const answer = await send('api/v1/labels', { limit: 1 }, { as: checked });
    setBusy(false);
    if (answer instanceof Response || answer.status !== 401) login(checked);
    else setText(answer.text);
  };
  return (
    <dialog ref={dialog} class="login" aria-labelledby="login-title" onClose={() => { loginNeeded.value = null; }}>
      <form onSubmit={submit}>
        <h2 id="login-title">Log in</h2>
        <p>A user of this server's access control list. The password stays in this page's memory.</p>
        {text && <p class="error" role="alert">{text}</p>}
        <label>User<input name="user" autocomplete="username" value="default" required /></label>
        <label>Password<input name="password" type="password" autocomplete="current-password" ref={password} /></label>
        <div class="row end">
          <button type="button" onClick={() => dialog.current?.close()}>Cancel</button>
          <button type="submit" class="primary" disabled={isBusy}>Log in</button>
        </div>
      </form>
    </dialog>
  );
}
