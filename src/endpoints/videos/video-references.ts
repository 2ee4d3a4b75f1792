import type { VideoReference } from './video-protocol.ts'

/** Kinds of references by the ending of the file name. */
const KINDS: ReadonlyMap<string, VideoReference['kind']> = new Map([
  ...['mp4', 'mov'].map((ending) => [ending, 'video'] as const),
  ...['jpg', 'jpeg', 'png', 'bmp', 'webp'].map((ending) => [ending, 'image'] as const),
])

/** A reference's kind by its file name; undefined if the name has no known ending. */
export function referenceKind(url: string): VideoReference['kind'] | undefined {
  const path = URL.canParse(url) ? new URL(url).pathname : url
  return KINDS.get(path.slice(path.lastIndexOf('.') + 1).toLowerCase())
}

/** How a 2.6 prompt names its references: in the order of the list. */
const NUMBERED = /\bcharacter([1-9]\d*)\b/gi

/** How a 2.7 prompt names them: pictures and videos counted apart. */
const BY_KIND = /\b(image|video)\s?([1-9]\d*)\b|(图|视频)([1-9]\d*)(?!\w)/gi

const VIDEO_WORDS: ReadonlySet<string> = new Set(['video', '视频'])

type Kinds = readonly Pick<VideoReference, 'kind'>[]

/** `character2` → `Image 1`. Numbers without a reference stay unchanged. */
export function numberedToKinds(prompt: string, references: Kinds): string {
  return prompt.replace(NUMBERED, (mention, number: string) => nameByKind(references, Number(number)) ?? mention)
}

/** `Image 1` → `character2`. Numbers without a reference stay unchanged. */
export function kindsToNumbered(prompt: string, references: Kinds): string {
  return prompt.replace(BY_KIND, (mention, ...groups: (string | number | undefined)[]) => {
    const position = positionOf(references, groups)
    if (position === undefined) return mention
    // A Chinese word needs no space before it, a Latin one does.
    const before = prompt[Number(groups[4]) - 1] ?? ''
    return `${/\w/.test(before) ? ' ' : ''}character${position}`
  })
}

/** Does a text name one of the references as 2.6 does? */
export function namesNumbered(prompt: string, references: Kinds): boolean {
  return [...prompt.matchAll(NUMBERED)].some((match) => Number(match[1]) <= references.length)
}

/** Does a text name one of the references as 2.7 does? */
export function namesByKind(prompt: string, references: Kinds): boolean {
  return [...prompt.matchAll(BY_KIND)].some((match) => positionOf(references, match.slice(1)) !== undefined)
}

/** The place in the whole list, from 1, of a reference named by kind; undefined when there is none. */
function positionOf(references: Kinds, groups: readonly unknown[]): number | undefined {
  const [latinWord, latinNumber, chineseWord, chineseNumber] = groups
  const isVideo = VIDEO_WORDS.has(String(latinWord ?? chineseWord).toLowerCase())
  let left = Number(latinNumber ?? chineseNumber)
  for (const [index, { kind }] of references.entries()) {
    if ((kind === 'video') === isVideo) left -= 1
    if (left === 0) return index + 1
  }
  return undefined
}

function nameByKind(references: Kinds, position: number): string | undefined {
  const reference = references[position - 1]
  if (reference === undefined) return undefined
  const count = references.slice(0, position).filter(({ kind }) => kind === reference.kind).length
  return `${reference.kind === 'video' ? 'Video' : 'Image'} ${count}`
}
