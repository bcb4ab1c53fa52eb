// The Alertmanagers that are told of alerts, a row each.

import { ErrorBox } from '../../components/notice';
import { Table, type Column } from '../../components/table';
import type { Answered } from '../../ask';
import { timeText } from '../../clock';
import { count, UNKNOWN } from '../../format';
import type { Manager } from './alert';

function LastError({ of }: { of: Manager['lastError'] }) {
  if (of === null) return <>{UNKNOWN}</>;
  const text = `${timeText(Date.parse(of.at))}: ${of.text}`;
  return <span title={text}>{text}</span>;
}

const COLUMNS: Column<Manager>[] = [
  { name: 'url', title: 'Address', by: (row) => row.url, cell: (row) => <span title={row.url}>{row.url}</span> },
  { name: 'queued', title: 'Waiting', by: (row) => row.queued, cell: (row) => count(row.queued), isNumber: true, width: '84px' },
  { name: 'sent', title: 'Sent', by: (row) => row.sent, cell: (row) => count(row.sent), isNumber: true, width: '84px' },
  { name: 'dropped', title: 'Lost', by: (row) => row.dropped, cell: (row) => <span class={row.dropped > 0 ? 'bad' : ''}>{count(row.dropped)}</span>, isNumber: true, width: '84px' },
  { name: 'error', title: 'Last error', by: (row) => row.lastError?.at ?? '', cell: (row) => <LastError of={row.lastError} /> },
];

export function Managers({ managers, asked: { failure, again } }: { managers: Manager[] | null; asked: Answered<unknown> }) {
  return (
    <section class="card managers" aria-labelledby="managers">
      <h2 id="managers">Alertmanagers</h2>
      {failure && <ErrorBox failure={failure} retry={again} />}
      {managers?.length === 0 && <p class="hint">None is told of alerts. The option <code>--alertmanager http://HOST:9093</code> names one; it may be given several times.</p>}
      {managers && managers.length > 0 && (
        <>
          <p class="hint">Alerts of a request that fails are lost; those that still fire are told again. Counts are those since the start of the server.</p>
          <Table label="Alertmanagers" columns={COLUMNS} rows={managers} id={(row, at) => `${at} ${row.url}`} />
        </>
      )}
    </section>
  );
}
