import * as z from 'zod'
import { GatewayError } from '../../core/errors.ts'
import { momentOf, UsageQueryError } from '../../usage/usage-query.ts'

/** Time as Unix milliseconds, or as ISO 8601 text such as `2026-11-01`, which is UTC without a zone. */
export const moment = z.string().min(1).max(40)

/** Time in a body, where milliseconds may also be a number. */
export const bodyMoment = z.union([moment, z.int().min(0)])

/** Time as it was sent. */
type SentMoment = z.output<typeof bodyMoment>

/** Converts a time for `gateway.usage`, which accepts digits only as a number. */
export function momentText(sent: SentMoment): SentMoment {
  return typeof sent === 'string' && /^\d{1,15}$/.test(sent) ? Number(sent) : sent
}

/**
 * Returns a time in Unix milliseconds.
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
