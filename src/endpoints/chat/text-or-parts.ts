import { cacheMarkOf } from '../cache-marks.ts'
import type { ChatContentPart } from './chat-request.ts'

/** Joins text parts to one text, which every server accepts, unless one of them is to be cached. */
export function textOrParts(parts: ChatContentPart[]): string | ChatContentPart[] {
  if (parts.some((part) => cacheMarkOf(part) !== undefined)) return parts
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('\n')
}
