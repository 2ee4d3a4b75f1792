import { refuseNative } from './dashscope-native-errors.ts'

/** How a finished video reports its usage; each is a shape that the vendor documents or that was seen in its answers. */
export type VideoUsageShape =
  /** Wan 2.7: seconds billed, given and rendered, `SR` and `ratio`. The default there; without `ratio` for pictures. */
  | 'ratio'
  /** Wan 2.6: the same with `size` in place of `ratio`. The default there. */
  | 'size'
  /** The same with `1280x720` for `1280*720`. */
  | 'size-x'
  /** `video_count` and `video_duration` only, and `task_metrics` beside the link. The default of Wan 2.5. */
  | 'video-duration'
  /** The same with `video_ratio`, which holds pixels. */
  | 'video-ratio'
  /** Wan 2.7 with a text for `SR`. */
  | 'sr-text'
  /** Wan 2.7 with seconds like `10.0`. */
  | 'float'
  /** No usage. */
  | 'none'
  /** Wan 2.7 with a value in each field that cannot be. */
  | 'absurd'
  /** Wan 2.7 with -1 for all seconds. */
  | 'negative'

/** How a task ends; `unknown` reads so from the start. */
export type VideoEnding = 'succeeded' | 'fail' | 'missing-field' | 'unknown' | 'stuck'

/**
 * What the prompt asks of the task, in marks beside the fault marks (see `Fault`), which strike the submission. Like those they
 * are not echoed, several work together, and one that cannot be read is answered with a 400 that quotes it.
 */
export interface VideoMarks {
  /** `[[video:fail]]`, `[[video:missing-field]]`, `[[video:unknown]]`, `[[video:stuck]]` (for ever running). */
  readonly ending: VideoEnding
  /** `[[video:usage=size]]` */
  readonly usage: VideoUsageShape | undefined
  /** Rendered seconds, 0.1 to 600; default those asked for. `[[video:seconds=10]]` */
  readonly seconds: number | undefined
  /** Seconds of given videos, which are billed too; default 0, because no file is fetched. `[[video:input=5]]` */
  readonly inputSeconds: number
  /** In place of the setting `videoPendingMs`. `[[video:pending=60000]]` */
  readonly pendingMs: number | undefined
  /** In place of the setting `videoRunningMs`. `[[video:running=0]]` */
  readonly runningMs: number | undefined
}

const MARK = /\[\[video:([^\]=]*)(?:=([^\]]*))?\]\]/g

const ENDINGS: ReadonlySet<string> = new Set<VideoEnding>(['fail', 'missing-field', 'unknown', 'stuck'])
const SHAPES: ReadonlySet<string> = new Set<VideoUsageShape>([
  'ratio',
  'size',
  'size-x',
  'video-duration',
  'video-ratio',
  'sr-text',
  'float',
  'none',
  'absurd',
  'negative',
])
const MAX_SECONDS = 600

/** Reads the marks of a prompt. Throws RefusedCall when one cannot be read. */
export function videoMarks(prompt: string): VideoMarks {
  let marks: VideoMarks = {
    ending: 'succeeded',
    usage: undefined,
    seconds: undefined,
    inputSeconds: 0,
    pendingMs: undefined,
    runningMs: undefined,
  }
  for (const [mark, name = '', value] of prompt.matchAll(MARK)) {
    const setting = readMark(name.trim(), value?.trim())
    if (setting === undefined) return refuseNative(`The stand-in cannot read the mark ${mark}.`)
    marks = { ...marks, ...setting }
  }
  return marks
}

/** The text as the model reads it. */
export function withoutVideoMarks(prompt: string): string {
  return prompt.replace(MARK, '').trim()
}

function readMark(name: string, value: string | undefined): Partial<VideoMarks> | undefined {
  if (value === undefined) return ENDINGS.has(name) ? { ending: name as VideoEnding } : undefined
  if (name === 'usage') return SHAPES.has(value) ? { usage: value as VideoUsageShape } : undefined
  const number = /^\d{1,9}(?:\.\d{1,3})?$/.test(value) ? Number(value) : undefined
  if (number === undefined) return undefined
  switch (name) {
    case 'seconds':
      return number >= 0.1 && number <= MAX_SECONDS ? { seconds: number } : undefined
    case 'input':
      return { inputSeconds: number }
    case 'pending':
      return { pendingMs: number }
    case 'running':
      return { runningMs: number }
    default:
      return undefined
  }
}
