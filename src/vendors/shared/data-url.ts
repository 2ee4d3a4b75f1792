/** The content of a data URL. */
export interface DataUrl {
  /** Media type in lower case, without parameters: `image/png`. Empty if the URL states none. */
  readonly mediaType: string
  /** Never empty. */
  readonly base64: string
}

/** Reads `data:image/png;base64,…`. Undefined for any other URL, and for data in another encoding. */
export function readDataUrl(url: string): DataUrl | undefined {
  const comma = url.indexOf(',')
  if (comma === -1 || url.slice(0, 5).toLowerCase() !== 'data:') return undefined
  const [mediaType = '', ...parameters] = url.slice(5, comma).toLowerCase().split(';')
  const base64 = url.slice(comma + 1)
  return parameters.at(-1)?.trim() === 'base64' && base64 !== '' ? { mediaType: mediaType.trim(), base64 } : undefined
}
