/** Address of a vendor's API. */
export interface VendorAddress {
  /** Scheme, host and port. */
  readonly origin: string
  /** Path before the API's own path: empty, or `/proxy` without a trailing slash. */
  readonly prefix: string
}

/**
 * Splits a base URL into origin and path prefix. A base URL that already ends in the API's own path (`apiPath`, such as `/v1`) is
 * accepted, because vendors' SDKs use that form.
 * @throws TypeError if it is not an http(s) URL, or has credentials, a query or a fragment.
 */
export function vendorAddress(baseURL: string, apiPath = ''): VendorAddress {
  if (!URL.canParse(baseURL))
    throw new TypeError(`baseURL must be an http(s) URL, such as https://api.example.com/v1, not ${baseURL}`)
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

const RESOURCE = /^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$/i

/** Address of a customer's own host at a cloud: the name of the resource, or any address of it. */
export interface ResourceAddress {
  readonly resource?: string | undefined
  readonly endpoint?: string | undefined
}

/**
 * Returns the address of a resource at a cloud: `endpoint` as given, or `https://RESOURCE.domain`.
 * @throws TypeError unless exactly one of the two is given, and for an invalid resource name.
 */
export function resourceAddress(factory: string, { resource, endpoint }: ResourceAddress, domain: string): string {
  if (resource === undefined && endpoint === undefined) throw new TypeError(`${factory}: set resource or endpoint`)
  if (resource !== undefined && endpoint !== undefined)
    throw new TypeError(`${factory}: set only one of resource and endpoint`)
  if (endpoint !== undefined) return endpoint
  if (!RESOURCE.test(resource!)) throw new TypeError(`${factory}: resource must be the name of a resource: ${resource}`)
  return `https://${resource}.${domain}`
}
