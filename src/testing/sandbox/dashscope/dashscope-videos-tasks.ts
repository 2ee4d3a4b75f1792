import { randomUUID } from 'node:crypto'
import type { CheckedVideoRequest } from './dashscope-videos-checks.ts'
import type { VideoMarks } from './dashscope-videos-marks.ts'

/** States of a task (DashScope, Wan API references, `task_status`). */
export type VideoTaskStatus = 'PENDING' | 'RUNNING' | 'SUCCEEDED' | 'FAILED' | 'CANCELED' | 'UNKNOWN'

/** A video that was asked for. Its state follows from its times and the clock. */
export interface VideoTask {
  /** A UUID. */
  readonly id: string
  /** Who submitted it; a key stands for an account here, and others cannot see the task. */
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

/** How long the vendor knows a task (DashScope, Wan API references, "task_id"). */
const TASK_LIFE_MS = 24 * 60 * 60 * 1000
/** The oldest tasks are forgotten first. */
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
