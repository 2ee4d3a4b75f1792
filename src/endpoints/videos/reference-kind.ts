import type { VideoReference } from './video-intent.ts'

const KINDS: ReadonlyMap<string, VideoReference['kind']> = new Map([
  ['mp4', 'video'],
  ['mov', 'video'],
  ['jpg', 'image'],
  ['jpeg', 'image'],
  ['png', 'image'],
  ['bmp', 'image'],
  ['webp', 'image'],
])

/** Tells a reference's kind by its file name; undefined when the name does not say. */
export function referenceKind(url: string): VideoReference['kind'] | undefined {
  const path = URL.canParse(url) ? new URL(url).pathname : url
  return KINDS.get(path.slice(path.lastIndexOf('.') + 1).toLowerCase())
}
