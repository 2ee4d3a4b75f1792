import { isJsonObject } from '../core/json.ts'

/** Valid names and values of headers. */
export const HEADER_NAME = /^[!#$%&'*+.^_`|~\w-]+$/
export const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** Headers of the gateway about the call, which no hook may set. */
const OWN_HEADER = /^(?:x-request-id|x-ratelimit-.*|x-should-retry|x-signalbox-(?!repaired$|schema$).*)$/

/**
 * Checks headers for the caller's answer.
 * @throws TypeError with the header.
 */
export function checkedHeaders(headers: unknown): string[] {
  if (!isJsonObject(headers)) throw new TypeError('headers must be an object')
  return Object.entries(headers).flatMap(([given, value]) => {
    const name = given.toLowerCase()
    if (!name.startsWith('x-') || OWN_HEADER.test(name) || !HEADER_NAME.test(name))
      throw new TypeError(`the header ${JSON.stringify(given)} cannot be set by a hook`)
    if (typeof value !== 'string' || !HEADER_VALUE.test(value))
      throw new TypeError(`the header ${JSON.stringify(given)} cannot be sent`)
    return [name, value]
  })
}
