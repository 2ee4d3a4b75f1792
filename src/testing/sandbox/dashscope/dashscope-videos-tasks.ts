import { randomUUID } from 'node:crypto'
import { refuseNative } from './dashscope-errors.ts'
import type { CheckedVideoRequest } from './dashscope-videos-request.ts'

/** States of a task (DashScope, Wan API references, `task_status`). */
export type VideoTaskStatus = 'PENDING' | 'RUNNING' | 'SUCCEEDED' | 'FAILED' | 'CANCELED' | 'UNKNOWN'

/** A submitted video. Its times and the clock determine its state. */
export interface VideoTask {
  /** A UUID. */
  readonly id: string
  /** Key of the submitter. Each key is an account here, and others cannot see the task. */
  readonly key: string
  readonly request: CheckedVideoRequest
  readonly marks: VideoMarks
  /** Prompt without marks, truncated like the vendor does. */
  readonly prompt: string
  /** Whether the vendor rewrote the prompt. */
  readonly isPromptExtended: boolean
  /** Time of submission in Unix milliseconds, like all times here. */
  readonly submittedMs: number
  readonly startMs: number
  /** Time of the end; Infinity if it never ends. */
  readonly endMs: number
  readonly canceledMs?: number
}

/** The tasks of one sandbox. */
export interface VideoTasks {
  /** Stores a task under a new id, so that equal submissions are different tasks. */
  add(task: Omit<VideoTask, 'id'>): VideoTask
  /** Returns the task if this key submitted it less than 24 hours ago. */
  find(id: string, key: string, nowMs: number): VideoTask | undefined
  /** Returns the tasks that {@link find} would find for the key, newest first. */
  list(key: string, nowMs: number): VideoTask[]
  /** Cancels a pending task. Returns false for any other. */
  cancel(id: string, key: string, nowMs: number): boolean
}

/** How long the vendor stores a task (DashScope, Wan API references, "task_id"). */
const TASK_LIFE_MS = 24 * 60 * 60 * 1000
/** The oldest tasks are deleted first. */
const MAX_TASKS = 10_000

/** Creates an empty list of tasks. */
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

/** Returns the state of a task at a time. */
export function videoTaskStatus(task: VideoTask, nowMs: number): VideoTaskStatus {
  if (task.marks.ending === 'unknown') return 'UNKNOWN'
  if (task.canceledMs !== undefined) return 'CANCELED'
  if (nowMs < task.startMs) return 'PENDING'
  if (nowMs < task.endMs) return 'RUNNING'
  return task.marks.ending === 'succeeded' ? 'SUCCEEDED' : 'FAILED'
}

/** How a finished video reports its usage. Each shape is documented by the vendor or was observed in its answers. */
export type VideoUsageShape =
  /** Wan 2.7 (its default): billed, given and rendered seconds, `SR` and `ratio`, which is absent for images. */
  | 'ratio'
  /** Wan 2.6 (its default): like `ratio`, with `size` in place of `ratio`. */
  | 'size'
  /** Like `size`, with `1280x720` for `1280*720`. */
  | 'size-x'
  /** Wan 2.5 (its default): only `video_count` and `video_duration`, and `task_metrics` next to the link. */
  | 'video-duration'
  /** Like `video-duration`, with `video_ratio`, which contains pixels. */
  | 'video-ratio'
  /** Wan 2.7 with a string for `SR`. */
  | 'sr-text'
  /** Wan 2.7 with seconds like `10.0`. */
  | 'float'
  /** No usage. */
  | 'none'
  /** Wan 2.7 with an impossible value in each field. */
  | 'absurd'
  /** Wan 2.7 with -1 for all seconds. */
  | 'negative'

/** How a task ends. `unknown` applies from the start. */
export type VideoEnding = 'succeeded' | 'fail' | 'missing-field' | 'unknown' | 'stuck'

/**
 * Marks in the prompt that steer the task. Fault marks (see `Fault`) apply to the submission instead. Marks are not echoed and can
 * be combined. A malformed one gets a 400 that quotes it.
 */
export interface VideoMarks {
  /** `[[video:fail]]`, `[[video:missing-field]]`, `[[video:unknown]]`, `[[video:stuck]]` (runs indefinitely). */
  readonly ending: VideoEnding
  /** `[[video:usage=size]]` */
  readonly usage: VideoUsageShape | undefined
  /** Rendered seconds, 0.1 to 600. Defaults to the requested ones. `[[video:seconds=10]]` */
  readonly seconds: number | undefined
  /** Seconds of given videos, which are billed too. Default 0, because no file is fetched. `[[video:input=5]]` */
  readonly inputSeconds: number
  /** Replaces the setting `videoPendingMs`. `[[video:pending=60000]]` */
  readonly pendingMs: number | undefined
  /** Replaces the setting `videoRunningMs`. `[[video:running=0]]` */
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

/** Reads the marks of a prompt. Throws RefusedCall if one is malformed. */
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

/** Returns the text that the model reads. */
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
