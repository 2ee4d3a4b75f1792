const DATA_URL_PREFIX = /^\s*data:/i
// One class and no repetition: the search is linear and needs no stack, however long the text.
const FOREIGN_CHARACTER = /[^A-Za-z0-9+/=_-]/

/** What is wrong with a picture in base64, as the end of a sentence; undefined when nothing is. Linear in its length. */
export function base64Fault(data: string): string | undefined {
  if (data === '') return 'must not be empty'
  if (DATA_URL_PREFIX.test(data.slice(0, 64))) return 'must be base64 without a data: URI prefix'
  return hasValidEnd(data) && !FOREIGN_CHARACTER.test(data) ? undefined : 'must be base64'
}

/** Padding may be left out; where it stands, it fills the last group of four. */
function hasValidEnd(data: string): boolean {
  const padding = data.indexOf('=')
  if (padding === -1) return data.length % 4 !== 1
  return data.length % 4 === 0 && padding >= data.length - 2 && data.endsWith('=')
}
