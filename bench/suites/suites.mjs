import { suite as cluster } from './cluster.mjs'
import { suite as mcp } from './mcp.mjs'
import { suite as mounts } from './mounts.mjs'
import { suite as ordinary } from './ordinary.mjs'
import { suite as peers } from './peers.mjs'
import { suite as postgres } from './postgres.mjs'

/**
 * What can be compared; each is a section of `RESULTS.md`, in this order.
 * - `name`: its option on the command line; the ordinary one runs when none is given
 * - `heading`, `intro`: of the section
 * - `scenarios`, `proxiesOf(scenario)`: what is measured, and on whom
 * - `referencesOf(scenario)`: `{ name, column }` of proxies that the others are held against, round by round
 * - `verdictOf(scenario, result)`: what the column of targets says; none in a suite without it
 * - `prepare()`, `finish()`: does or checks what has to be there before, and ends it
 */
export const SUITES = [ordinary, peers, mounts, cluster, postgres, mcp]
