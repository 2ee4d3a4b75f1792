import { GatewayError } from '../core/errors.ts'
import { isJsonObject } from '../core/json.ts'
import type { Denial } from './hook.ts'

/** Denial with its defaults. */
export interface CheckedDenial {
  readonly error: GatewayError
  readonly isRefusal: boolean
  /** Error about the unusable part of the denial, or `undefined` if all of it is usable. The denial applies anyway. */
  readonly fault: TypeError | undefined
}

const MESSAGES = {
  request_denied: 'The request was denied by a rule of this service.',
  answer_denied: 'The answer was withheld by a rule of this service.',
} as const

/** Reads a hook's denial. Invalid members fall back to the default, so that they cannot void the denial. */
export function checkedDenial(denial: unknown, code: keyof typeof MESSAGES): CheckedDenial {
  const faults: string[] = isJsonObject(denial) ? [] : ['deny must be an object']
  const { message, status, code: publicCode, as = 'refusal' } = (isJsonObject(denial) ? denial : {}) as Denial
  const highest = code === 'request_denied' ? 499 : 599
  const isStatus = status === undefined || (Number.isInteger(status) && status >= 400 && status <= highest)
  if (!isStatus) faults.push(`deny.status must be from 400 to ${highest}`)
  if (message !== undefined && typeof message !== 'string') faults.push('deny.message must be a string')
  if (publicCode !== undefined && typeof publicCode !== 'string') faults.push('deny.code must be a string')
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
