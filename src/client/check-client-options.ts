import type { ClientOptions } from './client-options.ts'

/**
 * Finds what could only fail later, and less clearly.
 * @throws TypeError when the base URL is none of http or https, or the key cannot stand in a header.
 */
export function checkClientOptions({ baseURL, apiKey }: ClientOptions): void {
  if (!URL.canParse(baseURL) || !/^https?:$/.test(new URL(baseURL).protocol)) {
    throw new TypeError(`baseURL: expected the address of a gateway, such as http://127.0.0.1:8787/v1; got ${baseURL}`)
  }
  // Headers would refuse the key too, and show it in their error, where it must not be seen.
  if (apiKey !== undefined && !/^[\x20-\x7e]*$/.test(apiKey.trim())) {
    throw new TypeError('apiKey: holds a line break, or a character that is not ASCII')
  }
}
