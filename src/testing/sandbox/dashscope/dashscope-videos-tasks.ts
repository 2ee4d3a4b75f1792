import { randomUUID } from 'node:crypto'
import { refuseNative } from './dashscope-errors.ts'
import type { CheckedVideoRequest } from './dashscope-videos-request.ts'

/** States of a task (DashScope, Wan API references, `task_status`). */
export type VideoTaskStatus = 'PENDING' | 'RUNNING' | 'SUCCEEDED' | 'FAILED' | 'CANCELED' | 'UNKNOWN'

/** A submitted video. Its times and the clock determine its state. */
export interface VideoTask {
  /** A UUID. */
  readonly id: string
  /** The submitter; each key is an account here, and others cannot see the task. */
  readonly key: string
  readonly request: CheckedVideoRequest
  readonly marks: VideoMarks
  /** Without marks, no longer than the model reads it. */
  readonly prompt: string
  /** The vendor rewrote the prompt. */
  readonly isPromptExtended: boolean
  /** Unix milliseconds, like all times here. */
  readonly submittedMs: number
  readonly startMs: number
  /** Infinity when it never ends. */
  readonly endMs: number
  readonly canceledMs?: number
}

/** The tasks of one sandbox. */
export interface VideoTasks {
  /** Keeps a task under a new id: equal submissions make different tasks. */
  add(task: Omit<VideoTask, 'id'>): VideoTask
  /** The task, when this key submitted it less than 24 hours ago. */
  find(id: string, key: string, nowMs: number): VideoTask | undefined
  /** The tasks that {@link find} would find for the key, newest first. */
  list(key: string, nowMs: number): VideoTask[]
  /** Cancels a pending task; false for any other. */
  cancel(id: string, key: string, nowMs: number): boolean
}

/** How long the vendor keeps a task (DashScope, Wan API references, "task_id"). */
const TASK_LIFE_MS = 24 * 60 * 60 * 1000
/** The oldest tasks are deleted first. */
const MAX_TASKS = 10_000

/** Makes an empty list of tasks. */
export function videoTasks(): VideoTasks {
  // Ordered by submission.
  const tasks = new Map<string, VideoTask>()
  const isKnown = (task: VideoTask, key: string, nowMs: number): boolean =>
    task.key === key && nowMs - task.submittedMs < TASK_LIFE_MS
  const find: VideoTasks['find'] = (id, key, nowMs) => {
    const task = tasks.get(id)
    return task !== undefined && isKnown(task, key, nowMs) ? task : undefined
  }

  return {
    add(fields) {
      const task = { ...fields, id: randomUUID() }
      tasks.set(task.id, task)
      for (const earlier of tasks.values()) {
        const isExpired = task.submittedMs - earlier.submittedMs >= TASK_LIFE_MS
        if (!isExpired && tasks.size <= MAX_TASKS) break
        tasks.delete(earlier.id)
      }
      return task
    },
    find,
    list: (key, nowMs) => [...tasks.values()].filter((task) => isKnown(task, key, nowMs)).reverse(),
    cancel(id, key, nowMs) {
      const task = find(id, key, nowMs)
      if (task === undefined || videoTaskStatus(task, nowMs) !== 'PENDING') return false
      tasks.set(id, { ...task, canceledMs: nowMs })
      return true
    },
  }
}

/** The state of a task at a time. */
export function videoTaskStatus(task: VideoTask, nowMs: number): VideoTaskStatus {
  if (task.marks.ending === 'unknown') return 'UNKNOWN'
  if (task.canceledMs !== undefined) return 'CANCELED'
  if (nowMs < task.startMs) return 'PENDING'
  if (nowMs < task.endMs) return 'RUNNING'
  return task.marks.ending === 'succeeded' ? 'SUCCEEDED' : 'FAILED'
}

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
 * Marks in the prompt that steer the task. Fault marks (see `Fault`) apply to the submission instead. Marks are not echoed
 * and can be combined. A malformed one is a 400 that quotes it.
 */
export interface VideoMarks {
  /** `[[video:fail]]`, `[[video:missing-field]]`, `[[video:unknown]]`, `[[video:stuck]]` (for ever running). */
  readonly ending: VideoEnding
  /** `[[video:usage=size]]` */
  readonly usage: VideoUsageShape | undefined
  /** Rendered seconds, 0.1 to 600; default: the requested ones. `[[video:seconds=10]]` */
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
