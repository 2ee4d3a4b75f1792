import * as bare from './bare.mjs'
import * as bareReading from './bare-reading.mjs'
import * as gateway from './gateway.mjs'
import * as gatewaySqlite from './gateway-sqlite.mjs'

/** Proxy that all others are compared with. */
export const FLOOR = bare

/** All proxies, the floor first. */
export const PROXIES = [bare, bareReading, gateway, gatewaySqlite]

/** Returns the proxies of a scenario. */
export const proxiesOf = (scenario) =>
  PROXIES.filter(({ scenarios }) => scenarios === undefined || scenarios.includes(scenario.name))
