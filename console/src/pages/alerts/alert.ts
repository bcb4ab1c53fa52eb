// Alerts and Alertmanagers as the server reports them.

import { Maybe, Named, shaped, type Shaped } from '../../shape';
import { labelOf, seriesText } from '../../format';

const NUMBER: number = NaN;
const TEXT: string = '';

/** docs/rules.md describes the fields. Times are texts of RFC 3339, a value is one as Go prints it. */
const ALERTS = {
  alerts: [{
    labels: new Named(TEXT), annotations: new Named(TEXT), state: TEXT, activeAt: TEXT, value: TEXT, keepFiringSince: new Maybe(TEXT),
  }],
};

const MANAGERS = {
  activeAlertmanagers: [{
    url: TEXT, queued: NUMBER, sent: NUMBER, errors: NUMBER, dropped: NUMBER, lastError: new Maybe({ at: TEXT, text: TEXT }),
  }],
};

export type Alert = Shaped<typeof ALERTS>['alerts'][number] & { id: string };
export type Manager = Shaped<typeof MANAGERS>['activeAlertmanagers'][number];

/** The alerts of an answer. Two of one rule differ in their labels; those of two rules may not. */
export function alertsOf(answer: unknown): Alert[] {
  const times = new Map<string, number>();
  return shaped(answer, ALERTS).alerts.map((alert) => {
    const text = seriesText(alert.labels);
    const time = times.get(text) ?? 0;
    times.set(text, time + 1);
    return { ...alert, id: time === 0 ? text : `${text} ${time}` };
  });
}

export const managersOf = (answer: unknown): Manager[] => shaped(answer, MANAGERS).activeAlertmanagers;

export const nameOf = ({ labels }: Alert) => labelOf(labels, 'alertname');

/** Its labels but the name. */
export function restOf({ labels }: Alert): string {
  const { alertname: _, ...rest } = labels;
  return seriesText(rest).slice(1, -1);
}

/** What it says: the annotation that most rules have, or else the first one. */
export function saidBy({ annotations }: Alert): string {
  return labelOf(annotations, 'summary') || labelOf(annotations, 'description') || (Object.values(annotations)[0] ?? '');
}

/** Those of a state in which all words of the filter occur. */
export function matching(alerts: Alert[], filter: string, state: string): Alert[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  return alerts.filter((alert) => {
    if (state !== '' && alert.state !== state) return false;
    const text = `${alert.id}\n${Object.values(alert.annotations).join('\n')}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}
