import { GatewayError } from '../core/errors.ts'
import type { GatewayRequest } from '../core/exchange.ts'

/** Header that no form and no other site can send without permission. */
export const SAME_ORIGIN_HEADER = 'x-signalbox-console'

/**
 * Rejects a change that another site may have triggered in an operator's browser: such requests include cookies. No other origin may
 * send the header, because no preflight request for it is answered.
 * @throws GatewayError `permission_denied`.
 */
export function checkSameOrigin(request: GatewayRequest): void {
  if (request.header(SAME_ORIGIN_HEADER) !== '1') throw refused(`it lacks the header ${SAME_ORIGIN_HEADER}: 1`)
  const site = request.header('sec-fetch-site')
  if (site === 'same-origin') return
  if (site !== undefined) throw refused(`sec-fetch-site is ${JSON.stringify(site)}`)
  const origin = request.header('origin')
  if (origin === undefined) return
  const host = URL.canParse(origin) ? new URL(origin).host : undefined
  if (host !== request.header('host')) throw refused('origin and host differ')
}

function refused(why: string): GatewayError {
  return new GatewayError('permission_denied', { message: `This change was refused, because ${why}.` })
}
