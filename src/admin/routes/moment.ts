import * as z from 'zod'
import { GatewayError } from '../../core/errors.ts'
import { momentOf, UsageQueryError } from '../../usage/usage-query.ts'

/** A moment: Unix milliseconds, or an ISO 8601 text such as `2026-11-01`, which is UTC without a zone. */
export const moment = z.string().min(1).max(40)

/** A moment for `gateway.usage`, which takes digits as a number only. */
export function momentText(text: string): string | number {
  return /^\d{1,15}$/.test(text) ? Number(text) : text
}

/**
 * Unix milliseconds of a moment.
 * @throws GatewayError `invalid_request` naming the parameter.
 */
export function momentMs(param: string, text: string): number {
  try {
    return momentOf(param, momentText(text))
  } catch (cause) {
    if (!(cause instanceof UsageQueryError)) throw cause
    throw new GatewayError('invalid_request', { message: cause.message, param, cause })
  }
}
