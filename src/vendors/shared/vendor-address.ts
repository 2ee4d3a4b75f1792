/** Where a vendor's API is reached. */
export interface VendorAddress {
  /** Scheme, host and port. */
  readonly origin: string
  /** Path in front of the API's own path: empty, or `/proxy` without a trailing slash. */
  readonly prefix: string
}

/**
 * Splits a base URL into origin and path prefix. A base URL that already ends in the API's own path (`apiPath`, such as
 * `/v1`) is accepted, because SDKs of the vendors write it so.
 * @throws TypeError when it is no http(s) URL, or carries credentials, a query or a fragment.
 */
export function vendorAddress(baseURL: string, apiPath = ''): VendorAddress {
  const url = new URL(baseURL)
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw new TypeError(`baseURL is not an http(s) URL: ${baseURL}`)
  if (url.username !== '' || url.password !== '') throw new TypeError('baseURL must not carry credentials')
  if (url.search !== '' || url.hash !== '')
    throw new TypeError(`baseURL must not carry a query or fragment: ${baseURL}`)
  const path = url.pathname.replace(/\/+$/, '')
  const prefix = apiPath !== '' && path.endsWith(apiPath) ? path.slice(0, -apiPath.length) : path
  return { origin: url.origin, prefix }
}
