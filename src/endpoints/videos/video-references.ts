import type { VideoReference } from './video-protocol.ts'

/** Kinds of references by the ending of the file name. */
const KINDS: ReadonlyMap<string, VideoReference['kind']> = new Map([
  ...['mp4', 'mov'].map((ending) => [ending, 'video'] as const),
  ...['jpg', 'jpeg', 'png', 'bmp', 'webp'].map((ending) => [ending, 'image'] as const),
])

/** Returns the kind of a reference by its file name, or `undefined` if the ending is unknown. */
export function referenceKind(url: string): VideoReference['kind'] | undefined {
  const path = URL.canParse(url) ? new URL(url).pathname : url
  return KINDS.get(path.slice(path.lastIndexOf('.') + 1).toLowerCase())
}

/** Names of references in a 2.6 prompt, in the order of the list. */
const NUMBERED = /\bcharacter([1-9]\d*)\b/gi

/** Names of references in a 2.7 prompt, with images and videos numbered separately. */
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
    // Latin words need a space before them, Chinese words do not.
    const before = prompt[Number(groups[4]) - 1] ?? ''
    return `${/\w/.test(before) ? ' ' : ''}character${position}`
  })
}

/** Whether a text names one of the references in 2.6 form. */
export function namesNumbered(prompt: string, references: Kinds): boolean {
  return [...prompt.matchAll(NUMBERED)].some((match) => Number(match[1]) <= references.length)
}

/** Whether a text names one of the references in 2.7 form. */
export function namesByKind(prompt: string, references: Kinds): boolean {
  return [...prompt.matchAll(BY_KIND)].some((match) => positionOf(references, match.slice(1)) !== undefined)
}

/** Returns the position (from 1) in the whole list of a reference named by kind, if any. */
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
