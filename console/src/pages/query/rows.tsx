// The queries of the page: one editor each, what can be done with it, and what the server said of
// it.

import { signal } from '@preact/signals';
import { Editor } from '../../components/editor';
import { Icon, type IconName } from '../../components/icon';
import { FailureLine, Remarks, remarks } from '../../components/notice';
import { api, type Failure } from '../../api';
import { count, took } from '../../format';
import { change, draft, letter, replaceDraft, revision, runDrafts, setDraft, withDrafts } from './drafts';
import { answers, type Answered } from './run';
import { asked, explainHref, type Asked } from './state';

/** A text that could not be formatted, and why. */
const unformatted = signal<{ text: string; failure: Failure } | null>(null);

async function format(at: number): Promise<void> {
  const text = withDrafts()[at]?.text ?? '';
  const outcome = await api<string>('format_query', { query: text }, { method: 'POST' });
  unformatted.value = outcome.ok ? null : { text, failure: outcome };
  if (outcome.ok && withDrafts()[at]?.text === text) replaceDraft(at, outcome.data);
}

function seriesCount({ data }: Answered): number {
  return data?.resultType === 'matrix' || data?.resultType === 'vector' ? data.result.length : data ? 1 : 0;
}

/** The figures of `stats=all`. */
function Figures({ answer }: { answer: Answered }) {
  const stats = answer.data?.stats;
  if (!stats) return null;
  const parts = [
    `${count(seriesCount(answer))} series`,
    `${count(stats.samples.seriesTouched)} read`,
    `${count(stats.latewood?.samplesDecoded ?? stats.samples.samplesRead)} samples decoded`,
    `${count(stats.latewood?.samplesFromStatistics ?? 0)} from statistics`,
    `${count(stats.latewood?.lateSamplesMerged ?? 0)} late merged`,
    `${took(stats.timings.execTotalTime * 1000)} in the server, ${took(answer.took_ms)} in all`,
  ];
  return <p class="figures">{parts.map((part) => <span key={part}>{part}</span>)}</p>;
}

/** Leads to the Explain page, with what is typed. */
function ExplainLink({ at, query }: { at: number; query: Asked }) {
  const name = `Explain (${letter(at)})`;
  return (
    <a class="quiet explain" href={explainHref(draft(at) ?? query.text)} title={name} aria-label={name}
      onClick={(event) => { event.currentTarget.href = explainHref(draft(at) ?? query.text); }}><Icon name="tree" /></a>
  );
}

function Row({ query, at }: { query: Asked; at: number }) {
  const answer = answers.value[at];
  const isAnswered = answer?.text === query.text && !query.isOff;
  const isUnformatted = unformatted.value?.text === (draft(at) ?? query.text);
  const name = letter(at);
  const act = (title: string, icon: IconName, run: () => void, pressed?: boolean) => (
    <button type="button" class="quiet" title={title} aria-label={`${title} (${name})`} aria-pressed={pressed} onClick={run}><Icon name={icon} /></button>
  );
  return (
    <li class={`query ${query.isOff ? 'off' : ''}`} aria-label={`Query ${name}`}>
      <div class="line">
        <span class="letter">{name}</span>
        <Editor label={`Query ${name}`} text={draft(at) ?? query.text} revision={revision.value}
          onText={(text) => { setDraft(at, text); unformatted.value = null; }} onRun={runDrafts} />
        <div class="actions">
          <ExplainLink at={at} query={query} />
          {act('Format', 'format', () => void format(at))}
          {act('Duplicate', 'copy', () => change(at, (one) => [one, one]))}
          {act(query.isOff ? 'Enable' : 'Disable', query.isOff ? 'hidden' : 'eye', () => change(at, (one) => [{ ...one, isOff: !one.isOff }]), query.isOff)}
          {act('Remove', 'close', () => change(at, () => []))}
        </div>
      </div>
      {isUnformatted && <div class="said"><FailureLine failure={unformatted.value!.failure} /></div>}
      {isAnswered && (
        <div class="said">
          {answer.failure && <FailureLine failure={answer.failure} />}
          <Figures answer={answer} />
          <Remarks all={[...remarks('warning', answer.warnings), ...remarks('info', answer.infos)]} />
        </div>
      )}
    </li>
  );
}

export function Rows() {
  return <ol class="queries">{asked.value.map((query, at) => <Row key={at} query={query} at={at} />)}</ol>;
}
