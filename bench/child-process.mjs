import { spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { availableParallelism } from 'node:os'
import { delimiter, join } from 'node:path'

/** Where the processes run: the proxy alone on one core, vendor and driver together on another. */
export const PROXY_CORE = 0
export const LOAD_CORE = 1

/** True where processes can be kept on one core each. */
export const canPin = availableParallelism() > 1 && isInstalled('taskset')

/**
 * Starts a Node program that answers questions by `answerQuestions`. Resolves when it is ready.
 * @param {URL} file
 * @param {{ core: number, arguments?: readonly string[], execArguments?: readonly string[] }} options
 */
export function startChild(file, { core, arguments: programArguments = [], execArguments = [] }) {
  const command = [process.execPath, ...execArguments, file.pathname, ...programArguments]
  const [program, ...rest] = canPin ? ['taskset', '-c', String(core), ...command] : command
  const child = spawn(program, rest, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], serialization: 'advanced' })
  const waiting = new Map()
  let questionCount = 0

  const ask = (question, details) =>
    new Promise((resolve, reject) => {
      questionCount += 1
      waiting.set(questionCount, { resolve, reject })
      child.send({ id: questionCount, question, details })
    })
  const stop = () =>
    new Promise((resolve) => {
      if (child.exitCode !== null || child.signalCode !== null) return resolve()
      child.once('exit', () => resolve())
      child.disconnect()
    })

  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('exit', (code) => {
      const fault = new Error(`${file.pathname} ended with code ${code}`)
      reject(fault)
      for (const { reject: fail } of waiting.values()) fail(fault)
    })
    child.on('message', ({ id, answer, fault }) => {
      if (id === 0) return resolve({ ask, stop, pid: child.pid, ready: answer })
      const asked = waiting.get(id)
      waiting.delete(id)
      if (fault === undefined) asked?.resolve(answer)
      else asked?.reject(new Error(fault))
    })
  })
}

/**
 * The child's side: says that it is ready, answers questions by name, and ends with its parent.
 * @param {unknown} ready what the parent gets as `ready`
 * @param {Readonly<Record<string, (details: never) => unknown>>} answers
 */
export function answerQuestions(ready, answers) {
  process.on('message', async ({ id, question, details }) => {
    try {
      process.send({ id, answer: await answers[question](details) })
    } catch (error) {
      process.send({ id, fault: error instanceof Error ? (error.stack ?? error.message) : String(error) })
    }
  })
  process.on('disconnect', () => process.exit(0))
  process.send({ id: 0, answer: ready })
}

function isInstalled(program) {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}
