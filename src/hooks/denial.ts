import { GatewayError } from '../core/errors.ts'
import { isJsonObject } from '../core/json.ts'
import type { Denial } from './hook.ts'

/** A denial with its defaults filled in. */
export interface CheckedDenial {
  readonly error: GatewayError
  readonly isRefusal: boolean
  /** What of it could not be used; undefined: nothing. It denies all the same. */
  readonly fault: TypeError | undefined
}

const MESSAGES = {
  request_denied: 'The request was denied by a rule of this service.',
  answer_denied: 'The answer was withheld by a rule of this service.',
} as const

/** Reads what a hook denies with. Nothing in it can make the denial void: what is unusable falls back to the default. */
export function checkedDenial(denial: unknown, code: keyof typeof MESSAGES): CheckedDenial {
  const faults: string[] = isJsonObject(denial) ? [] : ['deny must be an object']
  const { message, status, code: publicCode, as = 'refusal' } = (isJsonObject(denial) ? denial : {}) as Denial
  const highest = code === 'request_denied' ? 499 : 599
  const isStatus = status === undefined || (Number.isInteger(status) && status >= 400 && status <= highest)
  if (!isStatus) faults.push(`deny.status must be from 400 to ${highest}`)
  if (message !== undefined && typeof message !== 'string') faults.push('deny.message must be a text')
  if (publicCode !== undefined && typeof publicCode !== 'string') faults.push('deny.code must be a text')
  if (as !== 'refusal' && as !== 'error') faults.push('deny.as must be refusal or error')
  const error = new GatewayError(code, {
    message: typeof message === 'string' ? message : MESSAGES[code],
    status: isStatus ? status : undefined,
    publicCode: typeof publicCode === 'string' ? publicCode : undefined,
  })
  return {
    error,
    isRefusal: as !== 'error',
    fault: faults.length === 0 ? undefined : new TypeError(faults.join('; ')),
  }
}
