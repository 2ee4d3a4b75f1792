/**
 * Headers of a JSON POST with a bearer key, as a flat list. Answers are asked for uncompressed: they are passed on and read
 * as they are. An empty key sends no credential, for servers that want none.
 */
export function bearerHeaders(apiKey: string, accept: 'application/json' | 'text/event-stream'): string[] {
  const headers = ['content-type', 'application/json', 'accept', accept, 'accept-encoding', 'identity']
  if (apiKey !== '') headers.push('authorization', `Bearer ${apiKey}`)
  return headers
}
