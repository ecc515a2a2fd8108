<?php

namespace CmsJobs\Laravel\Worker;

/** Frames of 4 bytes of length and JSON: orders from cmsjobs, messages to it. */
class Pipe
{
    /** The longest text in a message, in bytes. */
    public const LONGEST_TEXT = 65535;

    private $in;
    private $out;
    private $log;
    private string $buffer = '';

    public function __construct($in, $out, $log = null)
    {
        $this->in = $in;
        $this->out = $out;
        $this->log = $log ?? fopen('php://stdout', 'wb');
        stream_set_blocking($this->in, false);
        stream_set_read_buffer($this->in, 0);
    }

    /**
     * The next order, or null after the given seconds.
     *
     * @throws Gone
     */
    public function receive(int $seconds): ?array
    {
        $end = time() + $seconds;
        while (($order = $this->order()) === null) {
            $read = [$this->in];
            $none = null;
            $ready = @stream_select($read, $none, $none, 1);
            if ($ready === 0 && time() >= $end) {
                return null;
            }
            if (! $ready) {
                continue; // a second went by, or a signal came: Laravel's handler has noted it
            }
            $bytes = fread($this->in, 1 << 16);
            if (($bytes === '' || $bytes === false) && feof($this->in)) {
                throw new Gone('cmsjobs has closed the pipe');
            }
            $this->buffer .= $bytes;
        }

        return $order;
    }

    /** @throws Gone */
    public function send(array $message): void
    {
        $json = json_encode($message, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE | JSON_THROW_ON_ERROR);
        for ($bytes = pack('N', strlen($json)) . $json; $bytes !== ''; $bytes = substr($bytes, $n)) {
            $n = @fwrite($this->out, $bytes);
            if ($n === false || $n === 0) {
                throw new Gone('cmsjobs does not listen any more');
            }
        }
    }

    /** The order that is there already, or null: nothing is waited for. */
    public function arrived(): ?array
    {
        if (($order = $this->order()) === null) {
            $this->buffer .= (string) fread($this->in, 1 << 16);
            $order = $this->order();
        }

        return $order;
    }

    /** What is printed from now on is the next job's: cmsjobs may hear of that job later. */
    public function mark(): void
    {
        @fwrite($this->log, "\0cmsjobs: next job\0\n");
    }

    private function order(): ?array
    {
        if (strlen($this->buffer) < 4) {
            return null;
        }
        $end = 4 + unpack('N', $this->buffer)[1];
        if (strlen($this->buffer) < $end) {
            return null;
        }
        $order = json_decode(substr($this->buffer, 4, $end - 4), true, 16, JSON_THROW_ON_ERROR);
        $this->buffer = substr($this->buffer, $end);

        return $order;
    }
}
