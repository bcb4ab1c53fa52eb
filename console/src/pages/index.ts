// The pages, in the order of the navigation. A page is a folder with a component; one row here
// makes its route, its link and its key (`g`, then the letter).

import type { ComponentType } from 'preact';
import { AlertsPage } from './alerts';
import { CardinalityPage } from './cardinality';
import { ClusterPage } from './cluster';
import { CompactionPage } from './compaction';
import { ExplainPage } from './explain';
import { LatePage } from './late';
import { QueriesPage } from './queries';
import { QueryPage } from './query';
import { RulesPage } from './rules';
import { SeriesPage } from './series';
import { ServerPage } from './server';

export interface Page {
  /** The name in the address. */
  name: string;
  title: string;
  key: string;
  view: ComponentType;
  /** It is in the navigation of nodes of a cluster only. */
  isOfNodes?: boolean;
}

export const PAGES: Page[] = [
  { name: 'query', title: 'Query', key: 'q', view: QueryPage },
  { name: 'explain', title: 'Explain', key: 'e', view: ExplainPage },
  { name: 'series', title: 'Series', key: 's', view: SeriesPage },
  { name: 'late', title: 'Late', key: 'l', view: LatePage },
  { name: 'cardinality', title: 'Cardinality', key: 'c', view: CardinalityPage },
  { name: 'queries', title: 'Queries', key: 'u', view: QueriesPage },
  { name: 'rules', title: 'Rules', key: 'r', view: RulesPage },
  { name: 'alerts', title: 'Alerts', key: 'a', view: AlertsPage },
  { name: 'compaction', title: 'Compaction', key: 'o', view: CompactionPage },
  { name: 'server', title: 'Server', key: 'v', view: ServerPage },
  { name: 'cluster', title: 'Cluster', key: 'n', view: ClusterPage, isOfNodes: true },
];
