import * as z from 'zod'
import { GatewayError } from '../../core/errors.ts'
import { momentOf, UsageQueryError } from '../../usage/usage-query.ts'

/** A moment: Unix milliseconds, or an ISO 8601 text such as `2026-11-01`, which is UTC without a zone. */
export const moment = z.string().min(1).max(40)

/** The same in a body, where milliseconds are a number too. */
export const bodyMoment = z.union([moment, z.int().min(0)])

/** A moment as it is sent. */
type SentMoment = z.output<typeof bodyMoment>

/** A moment for `gateway.usage`, which takes digits as a number only. */
export function momentText(sent: SentMoment): SentMoment {
  return typeof sent === 'string' && /^\d{1,15}$/.test(sent) ? Number(sent) : sent
}

/**
 * Unix milliseconds of a moment.
 * @throws GatewayError `invalid_request` naming the parameter.
 */
export function momentMs(param: string, sent: SentMoment): number {
  try {
    return momentOf(param, momentText(sent))
  } catch (cause) {
    if (!(cause instanceof UsageQueryError)) throw cause
    throw new GatewayError('invalid_request', { message: cause.message, param, cause })
  }
}
