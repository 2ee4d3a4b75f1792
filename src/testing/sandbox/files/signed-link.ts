import { createHash } from 'node:crypto'
import type { SandboxCall } from '../sandbox-call.ts'

/** How long a link is good for (Model Studio: results are kept for 24 hours). */
export const LINK_LIFE_MS = 24 * 60 * 60 * 1000

/**
 * A link to a file at the origin that the call came to, signed and limited in time as object stores do it. A call in process
 * came to no origin: its link can be fetched by the same transport only.
 * @param options `madeMs`: Unix milliseconds from which on it is good for 24 hours. `processOrigin`: where links of calls in
 *   process point; `https://files.example` when absent.
 */
export function signedLink(
  { headers }: Pick<SandboxCall, 'headers'>,
  path: string,
  { madeMs, processOrigin = 'https://files.example' }: { readonly madeMs: number; readonly processOrigin?: string },
): string {
  const host = headers['host']
  const origin = host === undefined ? processOrigin : `http://${host}`
  const expires = Math.floor((madeMs + LINK_LIFE_MS) / 1000)
  const signature = createHash('sha256').update(`${path} ${expires}`).digest('base64url').slice(0, 27)
  return `${origin}${path}?Expires=${expires}&OSSAccessKeyId=sandbox&Signature=${signature}`
}

/** Is a link over? One that does not say `Expires` never is. */
export function isLinkOver({ query }: Pick<SandboxCall, 'query'>, nowMs: number): boolean {
  const expires = Number(new URLSearchParams(query).get('Expires') ?? Number.POSITIVE_INFINITY)
  return !(expires * 1000 >= nowMs)
}
