import type { GatewayEvent } from '../core/events.ts'
import type { Logger } from '../core/logger.ts'
import { formatDollars } from '../core/money.ts'

/** Log messages about money for the operator of `signalbox serve`, by event. */
const MESSAGES: { readonly [Type in GatewayEvent['type']]?: string } = {
  'balance-low': 'a balance is low',
  'cap-reached': 'a spending cap is reached',
  'charge-shortfall': 'a charge was above the balance; the account owes the rest',
  'account-frozen': 'an account was frozen',
  'usage-missing': 'a vendor reported no usage; the call was charged by an estimate',
  'usage-implausible': 'a vendor reported usage that cannot be right; it was estimated or cut',
  'unbilled-usage': 'a vendor may bill a call that nobody is charged for',
}

/** Logs the events that concern money; all others are left to the logger's own lines and to hosts that listen. */
export function logMoneyEvents(logger: Logger): (event: GatewayEvent) => void {
  return (event) => {
    const message = MESSAGES[event.type]
    if (message !== undefined) logger.warn(message, loggable(event))
  }
}

/** Loggers write JSON, which has no bigint: amounts become dollars, and `totalNanoDollars` becomes `total`. */
function loggable(event: GatewayEvent): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(event).map(([name, value]: [string, unknown]) =>
      typeof value === 'bigint' ? [name.replace(/NanoDollars$/, ''), formatDollars(value)] : [name, value],
    ),
  )
}
