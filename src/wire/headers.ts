/** Response headers as a transport gives them: lower-case names. */
export type HeaderMap = Readonly<Record<string, string | readonly string[] | undefined>>

/** The first value of a header, by lower-case name. */
export function firstHeader(headers: HeaderMap, name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'string' ? value : value?.[0]
}

/** The media type of a `content-type` value, lower-case, without parameters: `application/json`. */
export function mediaType(contentType: string | undefined): string {
  if (contentType === undefined) return ''
  const semicolon = contentType.indexOf(';')
  return (semicolon === -1 ? contentType : contentType.slice(0, semicolon)).trim().toLowerCase()
}

/**
 * Seconds that a vendor asks to wait: `retry-after-ms`, else `retry-after` as seconds or as an HTTP date.
 * Undefined when there is none or it cannot be read; never negative.
 */
export function retryAfterSeconds(headers: HeaderMap, nowMs: number): number | undefined {
  const milliseconds = Number(firstHeader(headers, 'retry-after-ms') ?? Number.NaN)
  if (Number.isFinite(milliseconds) && milliseconds >= 0) return milliseconds / 1000
  const text = firstHeader(headers, 'retry-after')
  if (text === undefined || text.trim() === '') return undefined
  const seconds = Number(text)
  if (Number.isFinite(seconds)) return seconds >= 0 ? seconds : undefined
  const date = Date.parse(text)
  return Number.isNaN(date) ? undefined : Math.max(0, (date - nowMs) / 1000)
}
