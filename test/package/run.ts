import { execFile } from 'node:child_process'

/** How a command ended and what it printed. */
export interface Run {
  readonly stdout: string
  readonly stderr: string
}

/** Runs a command to its end, without a shell. Rejects, with all it printed, unless it exits with 0 in time. */
export function run(command: string, args: readonly string[], options: { cwd: string }): Promise<Run> {
  return new Promise((resolve, reject) => {
    // The test runner forces colours on its children, and Node warns when that meets NO_COLOR.
    const env = { ...process.env, NO_COLOR: '1', FORCE_COLOR: undefined }
    const settings = { cwd: options.cwd, env, timeout: 240_000, maxBuffer: 64 * 1024 * 1024 }
    execFile(command, [...args], settings, (error, stdout, stderr) => {
      if (error === null) resolve({ stdout, stderr })
      else reject(new Error(`${command} ${args.join(' ')}: ${error.message}\n${stdout}\n${stderr}`, { cause: error }))
    })
  })
}
