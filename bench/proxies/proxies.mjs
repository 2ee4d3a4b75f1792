import * as bare from './bare.mjs'
import * as gateway from './gateway.mjs'

/** What everything is compared with. */
export const FLOOR = bare

/** Who takes part, the floor first. */
export const PROXIES = [bare, gateway]
