// Completion of PromQL: that of codemirror-promql, and names with dots or in quotes, which it does not
// know. A name that is no word of PromQL is written in quotes, of a metric as `{"http.requests"}`.

import type { Completion, CompletionContext, CompletionResult } from '@codemirror/autocomplete';
import { newCompleteStrategy, type CompleteStrategy } from '@prometheus-io/codemirror-promql';
import { labelText, quoted, seriesText } from '../format';
import { client, labelNames, metricNames } from './names';

interface Place {
  kind: 'metric' | 'label' | 'value';
  isQuoted: boolean;
}

/** What a name would be that follows this text. */
function placeOf(before: string): Place {
  const bare = before.replace(/"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`/g, '_').replace(/#.*/g, '');
  const [rest, ...inQuotes] = bare.split(/["'`]/) as [string, ...string[]];
  const isQuoted = inQuotes.length > 0;
  const isBegin = /(?:^|[({,])\s*$/.test(rest);
  if (isQuoted && (!isBegin || inQuotes.join('') !== '')) return { kind: 'value', isQuoted };
  if (isQuoted && /(?:^|[^\w:\s])\s*\{\s*$/.test(rest)) return { kind: 'metric', isQuoted };
  const isLabel = rest.lastIndexOf('{') > rest.lastIndexOf('}') || /\b(by|without|on|ignoring|group_left|group_right)\s*\([^()]*$/i.test(rest);
  return { kind: isLabel ? 'label' : 'metric', isQuoted };
}

/** A name as it is written at a place. */
function written({ kind, isQuoted }: Place, name: string): string {
  if (isQuoted) return quoted(name).slice(1, -1);
  return kind === 'label' ? labelText(name) : seriesText({ __name__: name });
}

/** The metric whose labels are being written. */
function metricOf(before: string): string | undefined {
  const [, quotedName, plain] = /(?:\{\s*"((?:\\.|[^"\\])+)"[^{}]*|([a-zA-Z_:][\w:]*)\s*\{[^{}]*)$/.exec(before) ?? [];
  return quotedName ?? plain;
}

async function namesAt(from: number, place: Place, before: string): Promise<CompletionResult> {
  const names = await (place.kind === 'label' ? labelNames(metricOf(before)) : metricNames());
  const options = names.map((label): Completion => ({ label, type: 'constant', apply: written(place, label) }));
  return { from, options, validFor: /^[\w:.]*$/ };
}

class Names implements CompleteStrategy {
  private readonly known = newCompleteStrategy({ remote: client });

  async promQL(context: CompletionContext): Promise<CompletionResult | null> {
    const word = context.matchBefore(/[a-zA-Z_:][\w:.]*/);
    const from = word?.from ?? context.pos;
    const before = context.state.sliceDoc(0, from);
    const place = placeOf(before);
    if (place.kind !== 'value' && (place.isQuoted || word?.text.includes('.'))) return namesAt(from, place, before);
    const found = await this.known.promQL(context);
    if (!found || place.kind === 'value') return found;
    // Names that are not words of PromQL are of metrics and labels.
    const options = found.options.map((one) => (one.type === 'constant' && !one.apply ? { ...one, apply: written(place, one.label) } : one));
    return { ...found, options };
  }
}

/** What codemirror-promql takes for its own. */
export const completion = new Names();
