import { spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { findProgram } from './find-program.mjs'

/** Where the processes run: the proxy alone on one core, vendor and driver together on another. */
export const PROXY_CORE = 0
export const LOAD_CORE = 1
/** Core of the second of two processes of a proxy; shared if there are only two cores. */
export const SECOND_PROXY_CORE = availableParallelism() > 2 ? 2 : LOAD_CORE

/** Whether each process can be bound to one core. */
export const canPin = availableParallelism() > 1 && findProgram('taskset') !== undefined

/**
 * A command that runs on one core, or on any when `core` is undefined, as program and arguments; `taskset` becomes the program,
 * so the process id is its own.
 */
export function pinned(command, core) {
  const [program, ...rest] = canPin && core !== undefined ? ['taskset', '-c', String(core), ...command] : command
  return { program, arguments: rest }
}

/**
 * Starts a Node program that answers calls with `answerQuestions`. Resolves when it is ready.
 * @param {URL} file
 * @param {{
 *   core?: number, program?: string, arguments?: readonly string[], execArguments?: readonly string[],
 *   environment?: Readonly<Record<string, string>>, output?: 'inherit' | 'ignore'
 * }} options `core`: any when absent; `program`: the Node that runs it, by default our own; `environment`: added to ours;
 *   `output`: where its standard output goes, by default to ours
 */
export async function startChild(file, options) {
  const { core, program = process.execPath, execArguments = [], environment, output = 'inherit' } = options
  const command = pinned([program, ...execArguments, file.pathname, ...(options.arguments ?? [])], core)
  const stdio = ['ignore', output, 'inherit', 'ipc']
  const env = { ...process.env, ...environment }
  const child = spawn(command.program, command.arguments, { stdio, env, serialization: 'advanced' })
  const { ask, ready } = questionsTo(child, file.pathname)
  const stop = () =>
    new Promise((resolve) => {
      if (child.exitCode !== null || child.signalCode !== null) return resolve()
      child.once('exit', () => resolve())
      child.disconnect()
    })
  return { ask, stop, pid: child.pid, ready: await ready }
}

/**
 * The calling side of a child process, or of a cluster's worker.
 * @returns `ready`, a promise of what the child says when it is; `ask(question, details)`, which rejects when the child has
 *   ended or the answer is a fault
 */
export function questionsTo(child, name) {
  const waiting = new Map()
  let questionCount = 0

  const ask = (question, details) =>
    new Promise((resolve, reject) => {
      if (!child.connected) return reject(new Error(`${name} has ended`))
      questionCount += 1
      waiting.set(questionCount, { resolve, reject })
      child.send({ id: questionCount, question, details })
    })

  const ready = new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('exit', (code) => {
      const fault = new Error(`${name} ended with code ${code}`)
      reject(fault)
      for (const { reject: fail } of waiting.values()) fail(fault)
    })
    child.on('message', ({ id, answer, fault }) => {
      if (id === 0) return resolve(answer)
      const asked = waiting.get(id)
      waiting.delete(id)
      if (fault === undefined) asked?.resolve(answer)
      else asked?.reject(new Error(fault))
    })
  })
  return { ask, ready }
}

/**
 * The child's side: reports that it is ready, answers calls by name, and exits with its parent.
 * @param {unknown} ready what the parent gets as `ready`
 * @param {Readonly<Record<string, (details: never) => unknown>>} answers
 */
export function answerQuestions(ready, answers) {
  // If a message cannot be sent, no process is left to read it.
  const tell = (message) => process.send(message, (error) => error && process.exit(0))
  process.on('message', async ({ id, question, details }) => {
    try {
      tell({ id, answer: await answers[question](details) })
    } catch (error) {
      tell({ id, fault: error instanceof Error ? (error.stack ?? error.message) : String(error) })
    }
  })
  process.on('disconnect', () => process.exit(0))
  tell({ id: 0, answer: ready })
}
