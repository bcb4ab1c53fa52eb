// The menus of queries that were run, and of those that were saved by name.

import { Icon } from '../../components/icon';
import { Menu } from '../../components/menu';
import { secondText } from '../../clock';
import { params, go } from '../../route';
import { useText } from './drafts';
import { noted, saved } from './history';

function History({ close }: { close: () => void }) {
  if (noted.value.length === 0) return <p class="hint">Queries that you run are listed here.</p>;
  return (
    <>
      <ul class="list">
        {noted.value.map((one) => (
          <li key={one.text}>
            <button type="button" onClick={() => { useText(one.text); close(); }}><code>{one.text}</code><time>{secondText(one.at_ms)}</time></button>
          </li>
        ))}
      </ul>
      <button type="button" class="quiet" onClick={() => { noted.value = []; }}>Forget all</button>
    </>
  );
}

function SavedOnes({ close }: { close: () => void }) {
  const save = (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.target as HTMLFormElement;
    const name = String(new FormData(form).get('name')).trim();
    if (name === '') return;
    saved.value = [...saved.peek().filter((one) => one.name !== name), { name, address: params.peek().toString() }];
    form.reset();
  };
  return (
    <>
      <form class="row" onSubmit={save}>
        <input name="name" aria-label="Name" placeholder="Name for what is shown" maxLength={100} />
        <button type="submit" class="primary">Save</button>
      </form>
      <ul class="list">
        {saved.value.map((one) => (
          <li key={one.name} class="row">
            <button type="button" onClick={() => { go('query', new URLSearchParams(one.address)); close(); }}>{one.name}</button>
            <button type="button" class="quiet" aria-label={`Remove ${one.name}`} onClick={() => { saved.value = saved.peek().filter((other) => other !== one); }}><Icon name="close" /></button>
          </li>
        ))}
      </ul>
    </>
  );
}

export function KeptMenus() {
  return (
    <>
      <Menu label="History" title="Queries that were run" side="right">{(close) => <History close={close} />}</Menu>
      <Menu label="Saved" title="Saved queries" side="right">{(close) => <SavedOnes close={close} />}</Menu>
    </>
  );
}
