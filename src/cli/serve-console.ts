import { randomBytes } from 'node:crypto'
import { type ConsoleHandlerOptions, consoleHandler } from '../console/index.ts'
import type { ExchangeHandler } from '../core/exchange.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { SettingError } from './setting-values.ts'

/** The key of the operator, and whether it was made for this run. */
export interface ServedOperatorKey {
  readonly key: string
  readonly isMade: boolean
}

const KEY_BYTES = 18

/**
 * The key that opens the console.
 * @param isTrial True where nothing but stand-ins and memory is behind it: a key is made then.
 * @throws SettingError where there is none.
 */
export function consoleKey(given: string | undefined, isTrial: boolean): ServedOperatorKey {
  if (given !== undefined) return { key: given, isMade: false }
  // Of letters and digits only, so that a double click in a terminal takes all of it.
  if (isTrial) return { key: randomBytes(KEY_BYTES).toString('hex'), isMade: true }
  throw new SettingError('--console: set SIGNALBOX_OPERATOR_KEY, at least 24 characters, which opens it')
}

/** The gateway with the console at `/console/` and the admin API at `/admin/v1`. */
export function withConsole(
  gateway: Gateway,
  inner: ExchangeHandler,
  { key, clientAddress, logger }: ServedOperatorKey & Pick<ConsoleHandlerOptions, 'clientAddress' | 'logger'>,
): ExchangeHandler {
  const operators = consoleHandler(gateway, { operatorKeys: [{ name: 'operator', key }], clientAddress, logger })
  return {
    handle(request, sink) {
      ;(isOfOperators(request.path) ? operators : inner).handle(request, sink)
    },
  }
}

function isOfOperators(path: string): boolean {
  return path === '/console' || path.startsWith('/console/') || path.startsWith('/admin/')
}
