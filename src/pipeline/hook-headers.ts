import { isJsonObject } from '../core/json.ts'

/** Names and values of headers that can be sent. */
export const HEADER_NAME = /^[!#$%&'*+.^_`|~\w-]+$/
export const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** Headers of the gateway that say something of the call, which no hook may set. */
const OWN_HEADER = /^(?:x-request-id|x-ratelimit-.*|x-should-retry|x-signalbox-(?!repaired$|schema$).*)$/

/**
 * Checks headers for the answer that a caller gets.
 * @throws TypeError naming the header.
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
