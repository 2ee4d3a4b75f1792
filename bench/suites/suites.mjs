import { suite as cluster } from './cluster.mjs'
import { suite as mcp } from './mcp.mjs'
import { suite as mounts } from './mounts.mjs'
import { suite as ordinary } from './ordinary.mjs'
import { suite as peers } from './peers.mjs'
import { suite as postgres } from './postgres.mjs'

/**
 * Comparisons; each is a section of `RESULTS.md`, in this order.
 * - `name`: its option on the command line; the ordinary one runs when none is given
 * - `heading`, `intro`: of the section
 * - `scenarios`, `proxiesOf(scenario)`: the measurements, and their proxies
 * - `referencesOf(scenario)`: `{ name, column }` of proxies that the others are compared with, round by round
 * - `verdictOf(scenario, result)`: text of the column of targets; a suite without it has no such column
 * - `prepare()`, `finish()`: creates or checks the requirements, and removes them
 */
export const SUITES = [ordinary, peers, mounts, cluster, postgres, mcp]
